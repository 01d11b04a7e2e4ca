/* SPDX-License-Identifier: MIT */
#include "test/conformance/runner.h"

#include <dirent.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static void trace_failed(struct vt_result *result, const char *path, int error)
{
	snprintf(result->trace_error, sizeof(result->trace_error), "%.400s: %s", path,
		 strerror(error));
}

static uint64_t bytes_max(const struct vt_options *options)
{
	return options->trace_bytes_max || options->trace_packets_max ? options->trace_bytes_max
								      : VT_TRACE_BYTES_MAX;
}

/* Returns false if packets may be left out of the trace: of a limit in bytes, half is always kept. */
static bool is_whole(const struct vt_job *job)
{
	const uint64_t kept_bytes = bytes_max(job->options) / 2;
	struct stat status;

	return !job->options->trace_packets_max && !stat(job->trace, &status) &&
	       (uint64_t)status.st_size < kept_bytes;
}

bool vt_open_trace(const struct vt_job *job)
{
	const struct vt_options *options = job->options;
	int rc = vb_sim_trace_limit(NULL, bytes_max(options), options->trace_packets_max);

	if (!rc)
		rc = job->trace[0] ? vb_sim_trace_open(NULL, job->trace) : ENOENT;

	if (rc && job->trace[0])
		trace_failed(job->result, job->trace, rc);
	return !rc;
}

void vt_close_trace(const struct vt_job *job, bool ethernet)
{
	int rc = vb_sim_trace_close(NULL);

	if (rc)
		trace_failed(job->result, job->trace, rc);
	else if (ethernet && is_whole(job))
		vt_check_trace(job->trace, job->test->may, job->result);
}

/* --- the folder --- */

/* Opens the folder, which is made if need be. In /tmp, another user may have made it. */
static int open_folder(const char *path)
{
	struct stat st;
	int fd;

	if (mkdir(path, 0700) && errno != EEXIST)
		return -1;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0 && (fstat(fd, &st) || st.st_uid != geteuid())) {
		close(fd);
		errno = EACCES;
		return -1;
	}
	return fd;
}

static void remove_traces(int folder)
{
	DIR *names = fdopendir(dup(folder));
	const struct dirent *entry;

	while (names && (entry = readdir(names)))
		if (!fnmatch("*.pcap", entry->d_name, 0) || !fnmatch("*.log", entry->d_name, 0) ||
		    !fnmatch("*.part", entry->d_name, 0))
			unlinkat(folder, entry->d_name, 0);
	if (names)
		closedir(names);
}

/* The descriptor stays open to the end of the process: each run holds a shared lock of the folder. */
void vt_prepare_traces(const struct vt_options *options, struct vt_place *place)
{
	const char *parent = getenv("TMPDIR");
	int folder;

	if (!vt_has_world(options) || options->trace_dir)
		return;
	snprintf(place->traces, sizeof(place->traces), "%s/verbena-test-%u",
		 parent && *parent ? parent : "/tmp", geteuid());
	folder = open_folder(place->traces);
	if (folder < 0) {
		fprintf(stderr, "verbena test: %s: %s (failed tests leave no packets)\n",
			place->traces, strerror(errno));
		place->traces[0] = '\0';
		return;
	}
	if (!flock(folder, LOCK_EX | LOCK_NB))
		remove_traces(folder);
	flock(folder, LOCK_SH);
}

/* --- the file of a test --- */

void vt_choose_trace(struct vt_job *job)
{
	const struct vt_options *options = job->options;

	if (!vt_has_world(options))
		return;
	if (options->trace_dir)
		snprintf(job->trace, sizeof(job->trace), "%s/%s.%s.pcap", options->trace_dir,
			 job->suite->name, job->test->name);
	else if (job->place->traces[0])
		snprintf(job->trace, sizeof(job->trace), "%s/%s.%s-%d.pcap", job->place->traces,
			 job->suite->name, job->test->name, getpid());
}

void vt_choose_log(struct vt_job *job)
{
	const char *end = strrchr(job->trace, '.');

	if (end)
		snprintf(job->log, sizeof(job->log), "%.*s.log", (int)(end - job->trace),
			 job->trace);
}

/* Adds the last rows of a log or a trace to the test's text, a line each. */
static void show_last(const struct vt_job *job, const char *path, const char *what)
{
	char *text = NULL, *rest, *line;
	size_t size = 0;
	FILE *out = job->options->show ? open_memstream(&text, &size) : NULL;

	if (!out)
		return;
	job->options->show(path, out);
	if (!fclose(out) && size) {
		vt_result_line(job->result, "its last %s:", what);
		for (rest = text; (line = strsep(&rest, "\n"));)
			if (*line)
				vt_result_line(job->result, "    %s", line);
	}
	free(text);
}

void vt_drop_trace(const struct vt_job *job)
{
	const bool failed = job->result->outcome == VT_FAILED;

	if (!job->trace[0])
		return;
	if (failed)
		show_last(job, job->log[0] ? job->log : job->trace,
			  job->log[0] ? "events" : "packets");
	if (failed && job->log[0])
		vt_result_line(job->result, "its events:  %s", job->log);
	if (failed && !job->options->trace_dir)
		vt_result_line(job->result, "its packets: %s", job->trace);
	if (!failed && !job->options->trace_dir)
		unlink(job->trace);
}
