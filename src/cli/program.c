/* SPDX-License-Identifier: MIT */
#include "src/cli/program.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

/* Linux follows at most so many (binfmt_script). */
#define INTERPRETERS_MAX 5

/* A file in memory, and where the reason of a refusal goes. */
struct image {
	const char *path;
	const unsigned char *bytes;
	size_t size_bytes;
	struct stat stat;
	const char *folder;
	char *reason;
	size_t reason_size_bytes;
};

__attribute__((format(printf, 2, 3))) static bool refuse(const struct image *image, const char *fmt,
							 ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(image->reason, image->reason_size_bytes, fmt, args);
	va_end(args);
	return false;
}

/* --- finding the program --- */

static bool may_run(const char *path)
{
	struct stat stat_;

	return stat(path, &stat_) == 0 && S_ISREG(stat_.st_mode) && access(path, X_OK) == 0;
}

char *program_find(const char *name)
{
	const char *folders = getenv("PATH");
	int err = ENOENT;
	char *path;

	if (strchr(name, '/') || !*name) {
		if (may_run(name))
			return strdup(name);
		errno = access(name, F_OK) ? ENOENT : EACCES;
		return NULL;
	}
	for (const char *at = folders ? folders : "/usr/local/bin:/usr/bin:/bin"; at;) {
		size_t length = strcspn(at, ":");

		if (asprintf(&path, "%.*s%s%s", (int)length, at, length ? "/" : "./", name) < 0)
			return NULL;
		if (may_run(path))
			return path;
		if (!access(path, F_OK))
			err = EACCES;
		free(path);
		at = at[length] ? at + length + 1 : NULL;
	}
	errno = err;
	return NULL;
}

/* --- reading the program --- */

static bool map(struct image *image)
{
	int fd = open(image->path, O_RDONLY | O_CLOEXEC);
	void *bytes = MAP_FAILED;

	if (fd < 0)
		return false;
	if (!fstat(fd, &image->stat) && image->stat.st_size > 0)
		bytes = mmap(NULL, image->stat.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (bytes == MAP_FAILED)
		return false;
	image->bytes = bytes;
	image->size_bytes = image->stat.st_size;
	return true;
}

/* size_bytes from an offset of the file; NULL if the file ends before. */
static const void *at(const struct image *image, uint64_t offset, uint64_t size_bytes)
{
	if (offset > image->size_bytes || size_bytes > image->size_bytes - offset)
		return NULL;
	return image->bytes + offset;
}

/* The first program header of a type; NULL if there is none. */
static const ElfW(Phdr) * segment(const struct image *image, uint32_t type)
{
	const ElfW(Ehdr) *header = at(image, 0, sizeof(*header));

	for (unsigned int i = 0; header && i < header->e_phnum; i++) {
		const ElfW(Phdr) *phdr = at(
			image, header->e_phoff + (uint64_t)i * header->e_phentsize, sizeof(*phdr));

		if (!phdr || phdr->p_type == type)
			return phdr;
	}
	return NULL;
}

/* A text that ends with 0; NULL if the file ends before. */
static const char *text_at(const struct image *image, uint64_t offset)
{
	const char *text = at(image, offset, 1);

	return text && memchr(text, 0, image->size_bytes - offset) ? text : NULL;
}

/* --- what the dynamic loader will do --- */

static bool is_privileged(const struct image *image)
{
	mode_t mode = image->stat.st_mode;

	if ((mode & S_ISUID) && image->stat.st_uid != getuid())
		return true;
	if ((mode & S_ISGID) && (mode & S_IXGRP) && image->stat.st_gid != getgid())
		return true;
	return getuid() != 0 && getxattr(image->path, "security.capability", NULL, 0) > 0;
}

/* Runs the loader, whose lines are "NAME => PATH (ADDRESS)"; NULL if it does not run. */
static FILE *list_libraries(const char *const *argv, pid_t *child)
{
	posix_spawn_file_actions_t actions;
	int ends[2], err;

	if (pipe2(ends, O_CLOEXEC))
		return NULL;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
	posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
	err = posix_spawn(child, argv[0], &actions, NULL, (char *const *)argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	close(ends[1]);
	if (!err)
		return fdopen(ends[0], "r");
	close(ends[0]);
	return NULL;
}

/* Where the loader finds the library; false if the loader does not look for the library. */
static bool loader_finds(const char *const *argv, char *found)
{
	char line[PATH_MAX + 256];
	pid_t child;
	bool finds = false;
	FILE *out = list_libraries(argv, &child);

	if (!out)
		return false;
	while (fgets(line, sizeof(line), out)) {
		const char *name = line + strspn(line, " \t");

		if (strncmp(name, PROGRAM_LIBRARY " ", sizeof(PROGRAM_LIBRARY)) == 0 &&
		    sscanf(name, "%*s => %4095s", found) == 1)
			finds = true;
	}
	fclose(out);
	waitpid(child, NULL, 0);
	return finds;
}

/* Where the program's library comes from. A program that names no library may still load one by
 * dlopen(3), so the loader then looks as if the program had named the library. */
static bool program_finds(const char *loader, const char *path, char *found)
{
	const char *const own[] = {loader, "--list", path, NULL};
	const char *const named[] = {loader, "--preload", PROGRAM_LIBRARY, "--list", path, NULL};

	return loader_finds(own, found) || loader_finds(named, found);
}

static bool same_file(const char *a, const char *b)
{
	struct stat one, other;

	return !stat(a, &one) && !stat(b, &other) && one.st_dev == other.st_dev &&
	       one.st_ino == other.st_ino;
}

static bool check_elf(const struct image *image)
{
	const ElfW(Ehdr) *header = at(image, 0, sizeof(*header)), *self = NULL;
	const ElfW(Phdr) *interpreter = NULL;
	char ours[PATH_MAX], found[PATH_MAX];
	const char *loader = NULL;

	self = (const void *)getauxval(AT_SYSINFO_EHDR);
	if (!header ||
	    header->e_ident[EI_CLASS] != (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32) ||
	    (self && header->e_machine != self->e_machine))
		return refuse(
			image,
			"%s was built for another machine than this libibverbs; build it for this "
			"machine",
			image->path);
	interpreter = segment(image, PT_INTERP);
	if (interpreter)
		loader = text_at(image, interpreter->p_offset);
	if (!loader)
		return refuse(image,
			      "%s is linked statically and cannot load another libibverbs; link it "
			      "with -libverbs dynamically",
			      image->path);
	snprintf(ours, sizeof(ours), "%s/" PROGRAM_LIBRARY, image->folder);
	if (program_finds(loader, image->path, found) && !same_file(found, ours))
		return refuse(image,
			      "%s loads %s, as its RPATH wins over LD_LIBRARY_PATH; link it "
			      "with -Wl,--enable-new-dtags or remove the RPATH (chrpath -d)",
			      image->path, found);
	return true;
}

/* The first word after "#!", or NULL. The caller frees it. */
static char *interpreter_of(const struct image *image)
{
	const char *text = (const char *)image->bytes;
	size_t start = 2, length;

	if (image->size_bytes < 3 || memcmp(text, "#!", 2) != 0)
		return NULL;
	while (start < image->size_bytes && (text[start] == ' ' || text[start] == '\t'))
		start++;
	for (length = 0; start + length < image->size_bytes; length++)
		if (strchr(" \t\n", text[start + length]))
			break;
	return length ? strndup(text + start, length) : NULL;
}

static bool check_file(struct image *image, char **next)
{
	if (is_privileged(image))
		return refuse(
			image,
			"%s gains privileges when it starts, and the loader then ignores "
			"LD_LIBRARY_PATH; run a copy without privileges, or run it as its owner",
			image->path);
	*next = interpreter_of(image);
	if (*next || image->size_bytes < SELFMAG || memcmp(image->bytes, ELFMAG, SELFMAG) != 0)
		return true;
	return check_elf(image);
}

bool program_takes(const char *path, const char *folder, char *reason, size_t reason_size_bytes)
{
	char *next = strdup(path);
	bool takes = true;

	for (unsigned int i = 0; next && takes && i < INTERPRETERS_MAX; i++) {
		char *file = next;
		struct image image = {.path = file,
				      .folder = folder,
				      .reason = reason,
				      .reason_size_bytes = reason_size_bytes};

		next = NULL;
		if (map(&image)) {
			takes = check_file(&image, &next);
			munmap((void *)image.bytes, image.size_bytes);
		}
		free(file);
	}
	free(next);
	return takes;
}
