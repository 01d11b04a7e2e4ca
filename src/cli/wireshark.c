/* SPDX-License-Identifier: MIT */
/*
 * `verbena wireshark`: installs the plugin and the profile of share/wireshark/ into the user's folders of
 * Wireshark, and removes them.
 *
 * The first line of an installed file has the checksum of the rest. A file with another first line, or another
 * checksum, is the user's: it is neither overwritten nor removed.
 */
#include "src/base/fnv.h"
#include "src/cli/options.h"
#include "src/cli/wireshark_files.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PROFILE	   "Verbena"
#define MARK	   " Installed by `verbena wireshark install`, removed by `uninstall`; checksum "
#define MARK_BYTES 128

struct folders {
	char plugins[PATH_MAX];
	char profile[PATH_MAX];
};

/* What is at the path of a file. */
enum found {
	ABSENT,
	OWN,
	FOREIGN,
};

static const struct cli_option no_options[] = {{0}};

static int fail(const char *path, const char *why)
{
	fprintf(stderr, "verbena wireshark: %s: %s\n", path, why);
	return CLI_EXIT_FAILED;
}

/* --- folders --- */

static bool is_folder(const char *path)
{
	struct stat what;

	return !stat(path, &what) && S_ISDIR(what.st_mode);
}

static const char *home(void)
{
	const char *named = getenv("HOME");
	const struct passwd *user = named && *named ? NULL : getpwuid(getuid());

	return named && *named ? named : user ? user->pw_dir : "/";
}

/* Writes a path of parts. Returns false if it is too long. */
static bool join(char path[PATH_MAX], const char *folder, const char *rest)
{
	return snprintf(path, PATH_MAX, "%s/%s", folder, rest) < PATH_MAX;
}

/* The user's configuration, as get_persconffile_dir_no_profile() of Wireshark's wsutil/filesystem.c finds it. */
static bool find_configuration(char path[PATH_MAX])
{
	const char *named = getenv("WIRESHARK_CONFIG_DIR"), *base = getenv("XDG_CONFIG_HOME");
	char old[PATH_MAX];

	if (named && *named)
		return snprintf(path, PATH_MAX, "%s", named) < PATH_MAX;
	if (!(base && *base ? join(path, base, "wireshark")
			    : join(path, home(), ".config/wireshark")) ||
	    !join(old, home(), ".wireshark"))
		return false;
	if (!is_folder(path) && is_folder(old))
		snprintf(path, PATH_MAX, "%s", old);
	return true;
}

static int find_folders(struct folders *folders)
{
	char configuration[PATH_MAX];

	if (find_configuration(configuration) &&
	    join(folders->profile, configuration, "profiles/" PROFILE) &&
	    join(folders->plugins, home(), ".local/lib/wireshark/plugins"))
		return CLI_EXIT_OK;
	return fail(home(), strerror(ENAMETOOLONG));
}

static int make_folder(const char *path)
{
	char part[PATH_MAX];

	for (const char *at = path + 1;; at++) {
		at = strchrnul(at, '/');
		snprintf(part, sizeof(part), "%.*s", (int)(at - path), path);
		if (mkdir(part, 0777) && errno != EEXIST)
			return fail(part, strerror(errno));
		if (!*at)
			return CLI_EXIT_OK;
	}
}

static int find_path(const struct folders *folders, const struct wireshark_file *file,
		     char path[PATH_MAX])
{
	const char *folder = file->is_plugin ? folders->plugins : folders->profile;

	return join(path, folder, file->name) ? CLI_EXIT_OK : fail(folder, strerror(ENAMETOOLONG));
}

/* --- files --- */

/* Writes the first line of an installed file, a comment. */
static void mark(const struct wireshark_file *file, const char *text, char line[MARK_BYTES])
{
	snprintf(line, MARK_BYTES, "%s" MARK "%016" PRIx64 "\n", file->is_plugin ? "--" : "#",
		 fnv_add_text(FNV_BASIS, text));
}

/* Returns the contents, which the caller frees; NULL: errno says why. */
static char *read_whole(const char *path)
{
	FILE *file = fopen(path, "re");
	char *text = NULL;
	size_t size_bytes = 0;

	if (!file)
		return NULL;
	if (getdelim(&text, &size_bytes, '\0', file) < 0 && !ferror(file)) {
		free(text);
		text = strdup("");
	}
	fclose(file);
	return text;
}

static enum found look_at(const struct wireshark_file *file, const char *path)
{
	char *text = read_whole(path), line[MARK_BYTES];
	const int err = errno;
	char *rest = text ? strchr(text, '\n') : NULL;
	enum found found = FOREIGN;

	if (!text)
		return err == ENOENT ? ABSENT : FOREIGN;
	if (rest) {
		mark(file, rest + 1, line);
		if (strncmp(text, line, strlen(line)) == 0)
			found = OWN;
	}
	free(text);
	return found;
}

/* Writes the file beside its place first, so that Wireshark never reads half a file. */
static int write_file(const struct wireshark_file *file, const char *path)
{
	char line[MARK_BYTES], beside[PATH_MAX + 8];
	FILE *out;
	bool bad;

	snprintf(beside, sizeof(beside), "%s.new", path);
	out = fopen(beside, "we");
	if (!out)
		return fail(beside, strerror(errno));
	mark(file, file->text, line);
	fputs(line, out);
	fputs(file->text, out);
	bad = fflush(out);
	bad |= fclose(out) != 0;
	if (!bad && !rename(beside, path))
		return CLI_EXIT_OK;
	fail(path, strerror(errno));
	unlink(beside);
	return CLI_EXIT_FAILED;
}

/* --- the commands --- */

/* Returns CLI_EXIT_FAILED after a message for each file of the user. */
static int refuse_foreign(const struct folders *folders)
{
	int status = CLI_EXIT_OK;
	char path[PATH_MAX];

	for (const struct wireshark_file *file = wireshark_files; file->name; file++) {
		if (find_path(folders, file, path))
			return CLI_EXIT_FAILED;
		if (look_at(file, path) == FOREIGN)
			status = fail(path, "Verbena has not written this file, or the file was "
					    "changed since; nothing is installed: move the file "
					    "away first");
	}
	return status;
}

static int install_files(const struct folders *folders)
{
	char path[PATH_MAX];
	int status = make_folder(folders->plugins);

	if (!status)
		status = make_folder(folders->profile);
	for (const struct wireshark_file *file = wireshark_files; file->name && !status; file++) {
		status = find_path(folders, file, path);
		if (!status)
			status = write_file(file, path);
		if (!status)
			printf("installed %s\n", path);
	}
	if (!status)
		printf("open a capture with: wireshark -C " PROFILE " FILE\n");
	return status;
}

static int remove_file(const struct wireshark_file *file, const char *path)
{
	switch (look_at(file, path)) {
	case ABSENT:
		return CLI_EXIT_OK;
	case OWN:
		if (unlink(path))
			return fail(path, strerror(errno));
		printf("removed %s\n", path);
		return CLI_EXIT_OK;
	default:
		return fail(path, "Verbena has not written this file, or the file was changed "
				  "since; the file stays: remove it if you do not need it");
	}
}

/* Wireshark keeps files of its own in the folder of a profile. */
static void remove_profile(const char *path)
{
	if (!rmdir(path))
		printf("removed %s\n", path);
	else if (errno == ENOTEMPTY)
		printf("%s has other files, and stays\n", path);
}

static int run_install(int argc, char **argv)
{
	struct folders folders;
	int status = cli_read_options(&cli_wireshark_install, argc, argv, NULL);

	if (!status)
		status = find_folders(&folders);
	if (!status)
		status = refuse_foreign(&folders);
	return status ? status : install_files(&folders);
}

static int run_uninstall(int argc, char **argv)
{
	struct folders folders;
	int status = cli_read_options(&cli_wireshark_uninstall, argc, argv, NULL);
	char path[PATH_MAX];

	if (!status)
		status = find_folders(&folders);
	if (status)
		return status;
	for (const struct wireshark_file *file = wireshark_files; file->name; file++)
		if (find_path(&folders, file, path) || remove_file(file, path))
			status = CLI_EXIT_FAILED;
	remove_profile(folders.profile);
	return status;
}

static int run_none(int argc, char **argv)
{
	const int status = cli_read_options(&cli_wireshark, argc, argv, NULL);

	if (status)
		return status;
	if (optind < argc)
		return cli_bad_usage(&cli_wireshark, "'%s' is neither install nor uninstall",
				     argv[optind]);
	return cli_bad_usage(&cli_wireshark, "install or uninstall is needed");
}

#define ABOUT_FOLDERS                                                                \
	"The plugin goes to ~/.local/lib/wireshark/plugins, the profile " PROFILE    \
	" to the folder profiles of\n"                                               \
	"Wireshark's configuration (~/.config/wireshark, or as XDG_CONFIG_HOME and " \
	"WIRESHARK_CONFIG_DIR say).\n"

const struct cli_command cli_wireshark_uninstall = {
	.name = "wireshark uninstall",
	.summary = "remove Verbena's plugin and profile of Wireshark",
	.synopsis = "",
	.about = "Removes what `verbena wireshark install` has installed. A file that was changed "
		 "since stays.\n" ABOUT_FOLDERS,
	.exits = "   0  success; also if nothing was installed\n"
		 "   1  a file was changed, or cannot be removed\n"
		 "   2  wrong usage\n",
	.options = no_options,
	.run = run_uninstall,
	.word = "uninstall",
};

const struct cli_command cli_wireshark_install = {
	.name = "wireshark install",
	.summary = "install Verbena's plugin and profile for Wireshark",
	.synopsis = "",
	.about = "Installs the plugin and the profile for the user who calls it, and prints each "
		 "file. A file\n"
		 "that Verbena has not written is never overwritten.\n" ABOUT_FOLDERS,
	.exits = "   0  success\n"
		 "   1  a file of the user is in the way, or a file cannot be written\n"
		 "   2  wrong usage\n",
	.options = no_options,
	.run = run_install,
	.word = "install",
	.next = &cli_wireshark_uninstall,
};

const struct cli_command cli_wireshark = {
	.name = "wireshark",
	.summary = "show calls, completions and events in Wireshark",
	.synopsis = "install | uninstall",
	.about = "Installs a plugin and a profile into the user's folders of Wireshark, or removes "
		 "them. They show\n"
		 "the captures of verbena trace annotate, with calls, completions and events "
		 "between the\n"
		 "packets, and name opcodes that Wireshark does not know.\n" ABOUT_FOLDERS,
	.exits = "   0  success\n"
		 "   1  a file of the user is in the way, or a file cannot be written or removed\n"
		 "   2  wrong usage\n",
	.options = no_options,
	.run = run_none,
	.takes_file = true,
	.part = &cli_wireshark_install,
};
