/* SPDX-License-Identifier: MIT */
#include "test/conformance/runner.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void trace_failed(struct vt_result *result, const char *path, int error)
{
	snprintf(result->trace_error, sizeof(result->trace_error), "%.400s: %s", path,
		 strerror(error));
}

bool vt_open_trace(const struct vt_job *job)
{
	int rc = job->trace[0] ? vb_sim_trace_open(NULL, job->trace) : ENOENT;

	if (rc && job->trace[0])
		trace_failed(job->result, job->trace, rc);
	return !rc;
}

void vt_close_trace(const struct vt_job *job, bool ethernet)
{
	int rc = vb_sim_trace_close(NULL);

	if (rc)
		trace_failed(job->result, job->trace, rc);
	else if (ethernet)
		vt_check_trace(job->trace, job->test->may, job->result);
}

/* Makes an empty file in $TMPDIR. Returns false, with errno, if it cannot. */
static bool make_temporary(char *path, size_t size_bytes)
{
	const char *folder = getenv("TMPDIR");
	int fd;

	snprintf(path, size_bytes, "%s/verbena-test-XXXXXX.pcap",
		 folder && *folder ? folder : "/tmp");
	fd = mkstemps(path, strlen(".pcap"));
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

void vt_choose_trace(struct vt_job *job)
{
	const struct vt_options *options = job->options;

	if (!vt_simulated(options))
		return;
	if (options->trace_dir) {
		snprintf(job->trace, sizeof(job->trace), "%s/%s.%s.pcap", options->trace_dir,
			 job->suite->name, job->test->name);
	} else if (!make_temporary(job->trace, sizeof(job->trace))) {
		job->trace[0] = '\0';
		trace_failed(job->result, "a file in $TMPDIR", errno);
	}
}

void vt_drop_trace(const struct vt_job *job)
{
	if (!job->trace[0] || job->options->trace_dir)
		return;
	if (job->result->outcome == VT_FAILED)
		vt_result_line(job->result, "its packets: %s", job->trace);
	else
		unlink(job->trace);
}
