/* SPDX-License-Identifier: MIT */
#include "src/parts/merge.h"

#include "src/parts/part.h"

#include <errno.h>
#include <fcntl.h>
#include <pcap/pcap.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PCAP_HEADER_BYTES 24 /* pcap-savefile(5) */

/* A file that is read, and its next packet. */
struct source {
	const char *name;
	pcap_t *pcap;
	struct pcap_pkthdr *header; /* NULL: no packet is left */
	const u_char *bytes;
	struct timeval last; /* the time of the packet before */
	unsigned long packet;
};

struct merge {
	struct source *sources;
	unsigned int count;
	char *sentence;
};

__attribute__((format(printf, 3, 4))) static int refuse(struct merge *merge, int err,
							const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(merge->sentence, MERGE_SENTENCE_BYTES, format, arguments);
	va_end(arguments);
	return err;
}

static bool is_before(const struct timeval *a, const struct timeval *b)
{
	return a->tv_sec != b->tv_sec ? a->tv_sec < b->tv_sec : a->tv_usec < b->tv_usec;
}

/* --- reading --- */

/* Reads the next packet of a file. */
static int advance(struct merge *merge, struct source *source)
{
	int status;

	if (source->header)
		source->last = source->header->ts;
	status = pcap_next_ex(source->pcap, &source->header, &source->bytes);
	source->packet++;
	if (status != 1) {
		source->header = NULL;
		/* A process that was killed has left its last record without the end. */
		if (status == PCAP_ERROR_BREAK || feof(pcap_file(source->pcap)))
			return 0;
		return refuse(merge, EBADMSG,
			      "%s: packet %lu cannot be read: %s; leave this file out",
			      source->name, source->packet, pcap_geterr(source->pcap));
	}
	if (is_before(&source->header->ts, &source->last))
		return refuse(
			merge, EINVAL,
			"%s: packet %lu has an earlier time than packet %lu; sort the file first, "
			"as by `reordercap %s SORTED`",
			source->name, source->packet, source->packet - 1, source->name);
	return 0;
}

/* Opens a file and reads its first packet. A process that was killed at once has left no header. */
static int open_source(struct merge *merge, const char *name)
{
	struct source *source = &merge->sources[merge->count];
	FILE *file = fopen(name, "re");
	char error[PCAP_ERRBUF_SIZE];
	struct stat status;

	if (!file)
		return refuse(merge, errno, "%s: %s; name files that can be read", name,
			      strerror(errno));
	if (fstat(fileno(file), &status) == 0 && S_ISREG(status.st_mode) &&
	    status.st_size < PCAP_HEADER_BYTES) {
		fclose(file);
		return 0;
	}
	*source = (struct source){.name = name};
	source->pcap =
		pcap_fopen_offline_with_tstamp_precision(file, PCAP_TSTAMP_PRECISION_NANO, error);
	if (!source->pcap) {
		fclose(file);
		return refuse(merge, EBADMSG, "%s is no capture (pcap): %s; leave this file out",
			      name, error);
	}
	merge->count++;
	return advance(merge, source);
}

static const char *link_name(const struct source *source)
{
	const int type = pcap_datalink(source->pcap);

	if (type == DLT_ERF)
		return "InfiniBand (ERF)";
	return type == DLT_EN10MB ? "Ethernet" : pcap_datalink_val_to_name(type) ?: "an unknown link";
}

static int check_links(struct merge *merge)
{
	const struct source *first = &merge->sources[0];

	for (unsigned int i = 1; i < merge->count; i++)
		if (pcap_datalink(merge->sources[i].pcap) != pcap_datalink(first->pcap))
			return refuse(
				merge, EINVAL,
				"%s has packets of %s, and %s has packets of %s: a pcap holds one "
				"link layer; join the files of each link layer by themselves",
				first->name, link_name(first), merge->sources[i].name,
				link_name(&merge->sources[i]));
	return 0;
}

/* --- writing --- */

static struct source *earliest(const struct merge *merge)
{
	struct source *found = NULL;

	for (unsigned int i = 0; i < merge->count; i++) {
		struct source *source = &merge->sources[i];

		if (source->header &&
		    (!found || is_before(&source->header->ts, &found->header->ts)))
			found = source;
	}
	return found;
}

static int write_packets(struct merge *merge, pcap_dumper_t *dumper)
{
	struct source *source;
	int err = 0;

	while (!err && !ferror(pcap_dump_file(dumper)) && (source = earliest(merge))) {
		pcap_dump((u_char *)dumper, source->header, source->bytes);
		err = advance(merge, source);
	}
	return err;
}

/* Closes the stream. */
static int write_all(struct merge *merge, FILE *out)
{
	int snaplen = 0, err;
	pcap_dumper_t *dumper;
	pcap_t *pcap;

	for (unsigned int i = 0; i < merge->count; i++)
		if (pcap_snapshot(merge->sources[i].pcap) > snaplen)
			snaplen = pcap_snapshot(merge->sources[i].pcap);
	pcap = pcap_open_dead_with_tstamp_precision(pcap_datalink(merge->sources[0].pcap), snaplen,
						    PCAP_TSTAMP_PRECISION_NANO);
	dumper = pcap ? pcap_dump_fopen(pcap, out) : NULL;
	if (pcap)
		pcap_close(pcap);
	if (!dumper) {
		fclose(out);
		return refuse(merge, ENOMEM,
			      "no memory is left to join captures; end other programs");
	}
	err = write_packets(merge, dumper);
	if (!err && (pcap_dump_flush(dumper) || ferror(pcap_dump_file(dumper)))) {
		err = errno ? errno : EIO;
		refuse(merge, err,
		       "the joined capture cannot be written: %s; make room, or name a file on "
		       "another disk",
		       strerror(err));
	}
	pcap_dump_close(dumper);
	return err;
}

int merge_write(FILE *out, const struct merge_files *files, char sentence[MERGE_SENTENCE_BYTES])
{
	struct merge merge = {
		.sources = calloc(files->count, sizeof(*merge.sources)),
		.sentence = sentence,
	};
	int err = 0;

	if (!merge.sources) {
		fclose(out);
		return refuse(&merge, ENOMEM,
			      "no memory is left to join captures; end other programs");
	}
	for (unsigned int i = 0; i < files->count && !err; i++)
		err = open_source(&merge, files->names[i]);
	if (!err && !merge.count)
		err = refuse(&merge, ENODATA, "%s: %s", files->names[0],
			     files->count > 1 ? "this file and the others are empty; name captures"
					      : "the file is empty; name a capture");
	if (!err)
		err = check_links(&merge);
	if (!err)
		err = write_all(&merge, out);
	else
		fclose(out);
	for (unsigned int i = 0; i < merge.count; i++)
		pcap_close(merge.sources[i].pcap);
	free(merge.sources);
	return err;
}

/* --- files that are replaced --- */

/* Opens a new file beside the one that it will replace, with the same rights. */
static FILE *open_beside(const char *path, const char *ending, char *beside)
{
	struct stat status;
	FILE *out;

	snprintf(beside, PART_NAME_BYTES, "%s%s", path, ending);
	unlink(beside);
	out = fopen(beside, "wxe");
	if (out && stat(path, &status) == 0) {
		(void)!fchown(fileno(out), status.st_uid, status.st_gid);
		(void)!fchmod(fileno(out), status.st_mode & 07777);
	}
	return out;
}

static int refuse_path(char *sentence, const char *path, int err)
{
	struct merge merge = {.sentence = sentence};

	return refuse(&merge, err, "%s: %s; name a file in a folder where files may be made", path,
		      strerror(err));
}

/* Writes the new file beside the one that it will replace. */
static int write_beside(const char *path, const struct merge_files *files, const char *ending,
			char beside[PART_NAME_BYTES], char *sentence)
{
	FILE *out = open_beside(path, ending, beside);
	int err;

	if (!out)
		return refuse_path(sentence, beside, errno);
	err = merge_write(out, files, sentence);
	if (err)
		unlink(beside);
	return err;
}

static int replace(const char *path, const struct merge_files *files, char *sentence)
{
	char beside[PART_NAME_BYTES];
	int err = write_beside(path, files, ".new", beside, sentence);

	if (!err && rename(beside, path)) {
		err = refuse_path(sentence, path, errno);
		unlink(beside);
	}
	return err;
}

/* Names the program that has a lock on the file, if the kernel says which one it is. */
static int refuse_locked(char *sentence, const char *path)
{
	struct merge merge = {.sentence = sentence};
	const int locker = (int)part_locker(path);
	char process[32] = "a process";

	if (locker)
		snprintf(process, sizeof(process), "process %d", locker);
	return refuse(&merge, EBUSY,
		      "%s: %s has a lock on the file (fcntl(2)) and does not write the trace; end "
		      "that process, or join what is there into another file by -o",
		      path, process);
}

/* err: why part_lock() has failed. */
static int refuse_lock(char *sentence, const char *path, int err)
{
	struct merge merge = {.sentence = sentence};

	if (err == EBUSY)
		return refuse_locked(sentence, path);
	if (err != EWOULDBLOCK)
		return refuse_path(sentence, path, err);
	return refuse(
		&merge, EWOULDBLOCK,
		"%s: a process writes this trace; wait for the end of the process, or join what is "
		"there into another file by -o",
		path);
}

int merge_to(const char *path, const struct merge_files *files, char sentence[MERGE_SENTENCE_BYTES])
{
	const bool is_new = access(path, F_OK) != 0;
	int fd = part_lock(path, O_CREAT), err;
	char resolved[PATH_MAX];
	struct stat status;

	if (fd < 0)
		return refuse_lock(sentence, path, errno);
	if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && realpath(path, resolved))
		err = replace(resolved, files, sentence);
	else
		err = merge_write(fopen(path, "we"), files, sentence);
	if (err && is_new)
		unlink(path);
	close(fd);
	return err;
}

/* --- the parts of a trace --- */

/* Locks a file of a trace. Returns -1 as part_lock() does, and with ENOTSUP if the name leads to no regular file: to
 * read a pipe might never end. */
static int lock_file(const char *name, int flags)
{
	int fd = part_lock(name, flags);
	struct stat status;

	if (fd < 0 || (fstat(fd, &status) == 0 && S_ISREG(status.st_mode)))
		return fd;
	close(fd);
	errno = ENOTSUP;
	return -1;
}

static const char *name_kind(mode_t mode)
{
	if (S_ISDIR(mode))
		return "a folder";
	if (S_ISLNK(mode))
		return "a symbolic link";
	return S_ISFIFO(mode) ? "a pipe" : S_ISREG(mode) ? NULL : "no regular file";
}

/* Says why a part stays that nobody writes. */
static int refuse_part(char *sentence, const char *part, int err)
{
	struct merge merge = {.sentence = sentence};
	struct stat status = {0};
	const char *kind = lstat(part, &status) ? NULL : name_kind(status.st_mode);

	if (kind)
		return refuse(&merge, ENOTSUP,
			      "%s has the name of a part and is %s; remove it or give it another "
			      "name",
			      part, kind);
	if (err == EBUSY)
		return refuse_locked(sentence, part);
	return refuse(&merge, err,
		      "%s: %s; let user %u, who owns this part, join or remove it, or join what is "
		      "there into another file by -o",
		      part, strerror(err), (unsigned int)status.st_uid);
}

/* The locked parts of a trace. */
struct locked {
	struct parts parts;
	int *fds;
	unsigned int stuck; /* counts the parts that nobody writes and that cannot be locked */
};

/* Keeps the finished parts of a list and locks them. Writes a sentence about the first part that is stuck. */
static void lock_finished(struct locked *locked, char *sentence)
{
	struct parts *parts = &locked->parts;
	unsigned int kept = 0;

	for (unsigned int i = 0; i < parts->count; i++) {
		int fd = lock_file(parts->names[i], O_NOFOLLOW);

		if (fd < 0) {
			if (errno != EWOULDBLOCK && errno != ENOENT && !locked->stuck++)
				refuse_part(sentence, parts->names[i], errno);
			free(parts->names[i]);
			continue;
		}
		locked->fds[kept] = fd;
		parts->names[kept++] = parts->names[i];
	}
	parts->count = kept;
}

/*
 * The joined file replaces NAME by one rename(2). Before it, each part gets another name: so a join that is
 * interrupted leaves the new file, and nothing is joined; or it leaves no new file, and the renamed parts are
 * joined.
 */
static int rename_parts(const struct parts *parts, char *sentence)
{
	char joining[PART_NAME_BYTES];

	for (unsigned int i = 0; i < parts->count; i++) {
		snprintf(joining, sizeof(joining), "%s" PART_JOINING, parts->names[i]);
		if (rename(parts->names[i], joining))
			return refuse_part(sentence, parts->names[i], errno);
	}
	return 0;
}

/* NAME is locked. Finishes a join, or takes back one that was interrupted. */
static int settle(const char *whole, char *sentence)
{
	char beside[PART_NAME_BYTES];
	bool is_joined;
	struct parts parts;
	int err = parts_list_joining(whole, &parts);

	if (err)
		return refuse_path(sentence, whole, err);
	snprintf(beside, sizeof(beside), "%s" PART_JOINING, whole);
	is_joined = access(beside, F_OK) != 0;
	for (unsigned int i = 0; i < parts.count && !err; i++) {
		char *name = parts.names[i], *part = strdup(name);

		if (part)
			part[strlen(part) - strlen(PART_JOINING)] = '\0';
		if (!part || (is_joined ? unlink(name) : rename(name, part)))
			err = refuse_part(sentence, name, part ? errno : ENOMEM);
		free(part);
	}
	parts_free(&parts);
	if (!err)
		unlink(beside);
	return err;
}

/* The files belong to the caller now. */
static int join(const char *whole, const struct parts *parts, char *sentence)
{
	const char **names = calloc(parts->count + 1, sizeof(*names));
	const struct merge_files files = {names, parts->count + 1};
	char beside[PART_NAME_BYTES];
	int err, fd;

	if (!names)
		return refuse_path(sentence, whole, ENOMEM);
	names[0] = whole;
	for (unsigned int i = 0; i < parts->count; i++)
		names[i + 1] = parts->names[i];
	err = write_beside(whole, &files, PART_JOINING, beside, sentence);
	free(names);
	/* Nobody has written a header. */
	if (err == ENODATA) {
		for (unsigned int i = 0; i < parts->count; i++)
			unlink(parts->names[i]);
		return 0;
	}
	if (err)
		return err;
	/* The new file is NAME after rename(2): with its lock, nobody begins a run or another join before the end. */
	fd = part_lock(beside, 0);
	err = rename_parts(parts, sentence);
	if (!err && rename(beside, whole))
		err = refuse_path(sentence, whole, errno);
	/* After a failure this takes the join back. */
	settle(whole, sentence);
	if (fd >= 0)
		close(fd);
	return err;
}

static int join_finished(const char *whole, struct locked *locked, char *sentence)
{
	int err = 0;

	locked->fds = calloc(locked->parts.count, sizeof(*locked->fds));
	if (!locked->fds)
		return refuse_path(sentence, whole, ENOMEM);
	lock_finished(locked, sentence);
	if (locked->parts.count)
		err = join(whole, &locked->parts, sentence);
	for (unsigned int i = 0; i < locked->parts.count; i++)
		close(locked->fds[i]);
	free(locked->fds);
	return !err && locked->stuck ? EBUSY : err;
}

static int join_once(const char *whole, char *sentence)
{
	int fd = lock_file(whole, O_CREAT), err;
	struct locked locked = {0};

	if (fd < 0)
		return refuse_lock(sentence, whole, errno);
	err = settle(whole, sentence);
	if (!err && (err = parts_list(whole, &locked.parts)))
		refuse_path(sentence, whole, err);
	if (!err && locked.parts.count)
		err = join_finished(whole, &locked, sentence);
	parts_free(&locked.parts);
	close(fd);
	return err;
}

/* Returns true if a list has parts and all are finished. Frees the list. */
static bool are_finished(struct parts *parts)
{
	bool finished = parts->count > 0;

	for (unsigned int i = 0; i < parts->count; i++)
		finished &= !part_is_written(parts->names[i]);
	parts_free(parts);
	return finished;
}

static bool is_run_finished(const char *whole)
{
	struct parts parts, joining;
	const bool known = parts_list(whole, &parts) == 0;

	if (known && parts.count)
		return are_finished(&parts);
	return known && parts_list_joining(whole, &joining) == 0 && are_finished(&joining);
}

/*
 * Two callers may leave at the same time. Each has released its part before it looks, so the one that looks
 * last sees that all parts are finished. A caller that finds NAME locked may leave: who holds the lock looks
 * again after releasing it, or writes a part and joins all parts at its own end.
 *
 * The loop ends: each join takes a part away, or finds a part that is written and will not be written at the next look,
 * or fails.
 */
int merge_at_end(const char *whole, char sentence[MERGE_SENTENCE_BYTES])
{
	int err = 0;

	while (!err && is_run_finished(whole))
		err = join_once(whole, sentence);
	return err == EWOULDBLOCK ? 0 : err;
}

/* Looks again for the callers that have found NAME locked. */
int merge_parts(const char *whole, char sentence[MERGE_SENTENCE_BYTES])
{
	const int err = join_once(whole, sentence);

	return err ? err : merge_at_end(whole, sentence);
}
