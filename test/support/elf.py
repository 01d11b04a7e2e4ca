# SPDX-License-Identifier: MIT
"""What readelf says of a library."""
import re
import subprocess


def readelf(*arguments):
    return subprocess.run(["readelf", "-W", *arguments], check=True, capture_output=True,
                          text=True).stdout


def exports(library):
    """Returns {(name with node, kind, size of data)} of a library."""
    found = set()
    for line in readelf("--dyn-syms", library).splitlines():
        fields = line.split()
        if len(fields) >= 8 and fields[6] != "UND" and "@" in fields[7]:
            size = int(fields[2], 0) if fields[3] == "OBJECT" else 0
            found.add((fields[7], fields[3], size))
    return found


def nodes(library):
    """Returns the version nodes that a library defines, each with the node that it extends."""
    text = readelf("--version-info", library)
    text = text[text.index("Version definition"):].split("\n\n")[0]
    return re.findall(r"(?:Name|Parent \d+): (\S+)", text)
