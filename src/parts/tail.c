/* SPDX-License-Identifier: MIT */
#include "src/parts/tail.h"

#include "src/parts/part.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define COPY_SIZE 65536

/* --- a file that replaces another one --- */

/* Opens a new file beside the one that it will replace, with the same rights. It is locked as a file that is
 * written. */
static FILE *open_new(const char *path, char name[PART_NAME_BYTES])
{
	struct stat status;
	FILE *out;

	snprintf(name, PART_NAME_BYTES, "%s" TAIL_NEW, path);
	unlink(name);
	out = fopen(name, "wxe");
	if (!out)
		return NULL;
	flock(fileno(out), LOCK_EX | LOCK_NB);
	if (stat(path, &status) == 0) {
		(void)!fchown(fileno(out), status.st_uid, status.st_gid);
		(void)!fchmod(fileno(out), status.st_mode & 07777);
	}
	return out;
}

/* Replaces the file, unless err is set, and closes the new one. Returns 0 or an errno value. */
static int replace(FILE *out, const char *name, const char *path, int err)
{
	if (!err && (fflush(out) || ferror(out)))
		err = errno ? errno : EIO;
	if (!err && rename(name, path))
		err = errno;
	if (err)
		unlink(name);
	fclose(out);
	return err;
}

static int copy_rest(FILE *in, FILE *out)
{
	char bytes[COPY_SIZE];
	size_t length;

	while ((length = fread(bytes, 1, sizeof(bytes), in)))
		if (fwrite(bytes, 1, length, out) != length)
			return errno;
	return ferror(in) ? EIO : 0;
}

/* --- captures --- */

#define PCAP_HEADER_BYTES 24 /* pcap-savefile(5) */

/* Before each packet. */
struct record {
	uint32_t seconds, nanoseconds, captured_bytes, sent_bytes;
};

/* Skips at most `count` packets behind the header of the file. Returns how many there were. */
static uint64_t skip_packets(FILE *in, off_t size_bytes, uint64_t count)
{
	off_t at = PCAP_HEADER_BYTES;
	struct record record;
	uint64_t skipped = 0;

	while (skipped < count && !fseeko(in, at, SEEK_SET) &&
	       fread(&record, sizeof(record), 1, in) == 1) {
		/* A process that was killed has left its last packet without the end. */
		if (at + (off_t)sizeof(record) + record.captured_bytes > size_bytes)
			break;
		at += (off_t)sizeof(record) + record.captured_bytes;
		skipped++;
	}
	fseeko(in, at, SEEK_SET);
	return skipped;
}

static int write_capture(FILE *in, FILE *out, off_t size_bytes, uint64_t skipped)
{
	char header[PCAP_HEADER_BYTES];

	rewind(in);
	if (fread(header, sizeof(header), 1, in) != 1)
		return EBADMSG;
	if (fwrite(header, sizeof(header), 1, out) != 1)
		return errno;
	skip_packets(in, size_bytes, skipped);
	return copy_rest(in, out);
}

int tail_capture(const char *path, uint64_t count, uint64_t *left_out)
{
	FILE *in = fopen(path, "re"), *out;
	char name[PART_NAME_BYTES];
	struct stat status;
	uint64_t packets;
	int err;

	*left_out = 0;
	if (!in)
		return errno;
	packets = fstat(fileno(in), &status) ? 0 : skip_packets(in, status.st_size, UINT64_MAX);
	if (packets <= count) {
		fclose(in);
		return 0;
	}
	out = open_new(path, name);
	err = out ? write_capture(in, out, status.st_size, packets - count) : errno;
	if (out)
		err = replace(out, name, path, err);
	fclose(in);
	if (!err)
		*left_out = packets - count;
	return err;
}

/* --- logs --- */

/* A line of a log, which is being read. */
struct line {
	char *text;
	size_t size_bytes;
	uint64_t number; /* the event's */
	bool is_count;	 /* true for the line that counts what is left out */
};

/* Reads a line. Returns false at the end: a process that was killed may have left a line without its end, and bytes of
 * value 0. */
static bool read_line(FILE *in, struct line *line)
{
	const ssize_t length = getline(&line->text, &line->size_bytes, in);

	if (length <= 0 || line->text[length - 1] != '\n' ||
	    sscanf(line->text, "{\"n\":%" SCNu64, &line->number) != 1)
		return false;
	line->is_count = strstr(line->text, ",\"kind\":\"left_out\",") != NULL;
	return true;
}

/* The segments of a log. */
struct segments {
	FILE *older; /* NULL: there is none */
	FILE *newer;
	/* The numbers of the events, if events are left out before `newer`; first > last: there is no event. */
	uint64_t first, last;
};

static bool are_same(FILE *a, FILE *b)
{
	struct stat one, other;

	return fstat(fileno(a), &one) == 0 && fstat(fileno(b), &other) == 0 &&
	       one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

/* Returns true if events are left out before those of the file. */
static bool is_later(FILE *in)
{
	struct line line = {NULL};
	bool later = read_line(in, &line);

	/* The line behind the head. */
	later = later && read_line(in, &line) && line.is_count;
	free(line.text);
	rewind(in);
	return later;
}

/* Finds the numbers of the first and the last event of a segment. */
static void find_events(FILE *in, uint64_t *first, uint64_t *last)
{
	struct line line = {NULL};

	*first = 1;
	*last = 0;
	while (read_line(in, &line)) {
		if (line.is_count)
			*first = line.number + 1;
		*last = line.number;
	}
	free(line.text);
	rewind(in);
}

/* The writer may have begun a segment after one of the files was opened: then they do not belong together. */
static void open_older(const char *path, struct segments *segments)
{
	char name[PART_NAME_BYTES];
	uint64_t first, last;

	if (!is_later(segments->newer))
		return;
	find_events(segments->newer, &segments->first, &segments->last);
	snprintf(name, sizeof(name), "%s" TAIL_OLDER, path);
	segments->older = fopen(name, "re");
	if (!segments->older)
		return;
	find_events(segments->older, &first, &last);
	if (!are_same(segments->older, segments->newer) && last + 1 == segments->first) {
		segments->first = first;
		return;
	}
	fclose(segments->older);
	segments->older = NULL;
}

static int open_segments(const char *path, struct segments *segments)
{
	struct stat status;

	*segments = (struct segments){.newer = fopen(path, "re"), .first = 1};
	if (!segments->newer)
		return errno;
	if (fstat(fileno(segments->newer), &status) == 0 && S_ISREG(status.st_mode))
		open_older(path, segments);
	return 0;
}

static void close_segments(struct segments *segments)
{
	if (segments->older)
		fclose(segments->older);
	fclose(segments->newer);
}

/* Writes the events of a segment from a number on. */
static void write_events(FILE *in, FILE *out, uint64_t first)
{
	struct line line = {NULL};

	while (read_line(in, &line))
		if (line.number >= first && !line.is_count)
			fputs(line.text, out);
	free(line.text);
}

static int write_log(const struct segments *segments, uint64_t first, FILE *out)
{
	struct line head = {NULL};

	errno = 0;
	if (read_line(segments->newer, &head))
		fputs(head.text, out);
	free(head.text);
	if (first > 1)
		fprintf(out, "{\"n\":%" PRIu64 ",\"kind\":\"left_out\",\"events\":%" PRIu64 "}\n",
			first - 1, first - 1);
	if (segments->older)
		write_events(segments->older, out, first);
	write_events(segments->newer, out, first);
	return ferror(out) ? errno ?: EIO : 0;
}

FILE *tail_open_log(const char *path)
{
	struct segments segments;
	int err = open_segments(path, &segments);
	FILE *joined;

	if (err || !segments.older) {
		errno = err;
		return segments.newer;
	}
	joined = tmpfile();
	err = joined ? write_log(&segments, segments.first, joined) : errno;
	close_segments(&segments);
	if (joined && err) {
		fclose(joined);
		joined = NULL;
	}
	if (joined)
		rewind(joined);
	errno = err;
	return joined;
}

static void remove_beside(const char *path, const char *ending)
{
	char name[PART_NAME_BYTES];

	snprintf(name, sizeof(name), "%s%s", path, ending);
	unlink(name);
}

static int join(const char *path, const struct segments *segments, uint64_t first)
{
	char name[PART_NAME_BYTES];
	FILE *out = open_new(path, name);
	int err = out ? write_log(segments, first, out) : errno;

	return out ? replace(out, name, path, err) : err;
}

int tail_join_log(const char *path, uint64_t count, uint64_t *left_out)
{
	struct segments segments;
	int err = open_segments(path, &segments);
	uint64_t first;

	*left_out = 0;
	if (err)
		return err;
	/* A process may have been killed while it made a segment. */
	remove_beside(path, TAIL_NEW);
	first = segments.first;
	if (count && segments.last >= count && segments.last - count + 1 > first)
		first = segments.last - count + 1;
	if (segments.older || first > segments.first)
		err = join(path, &segments, first);
	close_segments(&segments);
	/* A process that was killed in the middle of a change of segments leaves NAME under both names. */
	if (!err)
		remove_beside(path, TAIL_OLDER);
	*left_out = err ? segments.first - 1 : first - 1;
	return err;
}
