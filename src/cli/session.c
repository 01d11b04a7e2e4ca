/* SPDX-License-Identifier: MIT */
#include "src/cli/session.h"

#include "src/base/count.h"
#include "src/cli/options.h"
#include "src/cli/program.h"
#include "src/files/plant.h"
#include "src/files/remove.h"
#include "src/project/environment.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include <verbena/error.h>
#include <verbena/verbs.h>

/* --- where the libraries are --- */

bool session_find_folder(const char *command, char *folder)
{
	static const char *const places[] = {"/src/dropin", "/../" VERBENA_LIBDIR "/verbena"};
	char self[PATH_MAX], library[PATH_MAX + 32];
	ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *end;

	if (length < 0)
		return false;
	self[length] = '\0';
	end = strrchr(self, '/');
	*end = '\0';
	for (size_t i = 0; i < COUNT(places); i++) {
		snprintf(library, sizeof(library), "%s%s", self, places[i]);
		if (!realpath(library, folder))
			continue;
		snprintf(library, sizeof(library), "%s/" PROGRAM_LIBRARY, folder);
		if (!access(library, R_OK))
			return true;
	}
	fprintf(stderr,
		"verbena %s: Verbena's " PROGRAM_LIBRARY
		" is neither in %s%s nor in %s%s; build or install all of Verbena\n",
		command, self, places[0], self, places[1]);
	return false;
}

/* --- where the folder is --- */

static bool is_writable_folder(const char *path)
{
	struct stat status;

	return !stat(path, &status) && S_ISDIR(status.st_mode) && !access(path, W_OK | X_OK);
}

/* A folder in memory, if there is one. */
static const char *choose_parent(void)
{
	const char *const places[] = {getenv("XDG_RUNTIME_DIR"), "/dev/shm", getenv("TMPDIR")};

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		if (places[i] && *places[i] == '/' && is_writable_folder(places[i]))
			return places[i];
	return "/tmp";
}

/* The beginning of the names of this user's folders. */
static int name_own(char *text, size_t size_bytes)
{
	return snprintf(text, size_bytes, "verbena-files-%u-", (unsigned int)getuid());
}

/* Removes folders of this user that no process uses: their processes were killed. */
static void clean(const char *parent)
{
	char own[64], path[PATH_MAX];
	int length = name_own(own, sizeof(own));
	DIR *folder = opendir(parent);
	struct dirent *entry;

	while (folder && (entry = readdir(folder))) {
		if (strncmp(entry->d_name, own, (size_t)length) != 0)
			continue;
		snprintf(path, sizeof(path), "%s/%s", parent, entry->d_name);
		files_take_back(path);
	}
	if (folder)
		closedir(folder);
}

/* --- the environment of the program --- */

int session_no_memory(void)
{
	fprintf(stderr, "verbena run: no memory\n");
	return CLI_EXIT_FAILED;
}

/* Puts a word before what a variable is, with ':' between them. */
static int put_before(const char *variable, const char *word)
{
	const char *others = getenv(variable);
	char *all;
	int status = CLI_EXIT_OK;

	if (asprintf(&all, "%s%s%s", word, others && *others ? ":" : "", others ? others : "") < 0)
		return session_no_memory();
	if (setenv(variable, all, 1))
		status = session_no_memory();
	free(all);
	return status;
}

/*
 * A program that was built with AddressSanitizer ends at once if a library stands before the
 * sanitizer's, unless this option allows it. The library calls the sanitizer's functions and not
 * libc's, so the order does no harm.
 */
static int allow_order(void)
{
	const char *given = getenv("ASAN_OPTIONS");

	if (given && strstr(given, "verify_asan_link_order"))
		return CLI_EXIT_OK;
	return put_before("ASAN_OPTIONS", "verify_asan_link_order=0");
}

int session_begin(const char *folder)
{
	const char *parent = choose_parent();
	char own[64], path[PATH_MAX], self[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
	int status = put_before("LD_LIBRARY_PATH", folder);
	uint64_t number = 0;

	if (status || length < 0)
		return status;
	self[length] = '\0';
	clean(parent);
	name_own(own, sizeof(own));
	/* Nobody else can guess the name, and put a folder of his own there. */
	(void)!getrandom(&number, sizeof(number), 0);
	snprintf(path, sizeof(path), "%s/%s%016" PRIx64, parent, own, number);
	if (setenv(SESSION_FOLDER, path, 1) || setenv(SESSION_MAKER, self, 1))
		return session_no_memory();
	snprintf(path, sizeof(path), "%s/" SESSION_LIBRARY, folder);
	status = put_before("LD_PRELOAD", path);
	return status ? status : allow_order();
}

/* --- making the folder --- */

static const char *why(int error)
{
	return vb_last_error()[0] ? vb_last_error() : strerror(error);
}

/* Without the trace, which would overwrite that of the program, without what goes wrong later, and without
 * addresses of the wire udp, which the program may have claimed before it looks at the files. */
static int configure(struct vb_sim_config *config)
{
	config->trace = NULL;
	config->event_count = 0;
	config->attributes_only = true;
	return vb_sim_configure(config);
}

static int make(const char *folder)
{
	struct ibv_device **list = vb_get_device_list("sim", NULL);
	int err = list ? files_plant(folder, list) : errno;

	if (list)
		vb_free_device_list(list);
	return err;
}

/* Several programs of a run may look at the same time, and each has the folder made. */
static bool is_of_run(const char *folder)
{
	const char *run = getenv(SESSION_FOLDER);

	return run && !strcmp(folder, run);
}

int session_make(const char *folder)
{
	struct vb_project_error error;
	struct vb_project *project = vb_environment_load(&error);
	int err;

	if (!project) {
		fprintf(stderr, "verbena run: %s\n", error.text);
		return CLI_EXIT_USAGE;
	}
	err = configure(&project->sim);
	if (!err)
		err = make(folder);
	vb_project_free(project);
	if (!err || (err == EEXIST && is_of_run(folder)))
		return CLI_EXIT_OK;
	fprintf(stderr,
		"verbena run: the files of the simulated devices cannot be made in %s: %s\n",
		folder, err == EEXIST ? strerror(err) : why(err));
	return CLI_EXIT_FAILED;
}
