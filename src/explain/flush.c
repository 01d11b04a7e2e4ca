/* SPDX-License-Identifier: MIT */
#include "src/explain/flush.h"

#include <infiniband/verbs.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

struct stream {
	struct stream *next;
	const struct ibv_context *context;
	char device[IBV_SYSFS_NAME_MAX];
	uint32_t qpn;
	enum flush_queue queue;
	uint64_t more; /* counts the flushes after the first */
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct stream *streams;
static atomic_uint stream_count;

void flush_lock(void)
{
	pthread_mutex_lock(&mutex);
}

void flush_unlock(void)
{
	pthread_mutex_unlock(&mutex);
}

bool flush_count(const struct ibv_context *context, uint32_t qpn, enum flush_queue queue)
{
	struct stream *stream;
	bool first;

	flush_lock();
	stream = streams;
	while (stream &&
	       (stream->context != context || stream->qpn != qpn || stream->queue != queue))
		stream = stream->next;
	first = !stream;
	if (stream) {
		stream->more++;
	} else {
		stream = malloc(sizeof(*stream));
		if (stream) {
			*stream = (struct stream){
				.next = streams, .context = context, .qpn = qpn, .queue = queue};
			snprintf(stream->device, sizeof(stream->device), "%s",
				 context->device->name);
			streams = stream;
			atomic_fetch_add(&stream_count, 1);
		}
	}
	flush_unlock();
	return first;
}

static void tell(const struct stream *stream, void (*print)(const char *sentence))
{
	static const char *const what[] = {"send", "receive", "work request"};
	char sentence[128];

	if (!stream->more)
		return;
	snprintf(sentence, sizeof(sentence), "%s: QP 0x%x: %" PRIu64 " more %s%s flushed",
		 stream->device, stream->qpn, stream->more, what[stream->queue],
		 stream->more == 1 ? " was" : "s were");
	print(sentence);
}

static bool is_of(const struct stream *stream, const struct ibv_context *context, uint32_t qpn)
{
	return !context ||
	       (stream->context == context && (qpn == FLUSH_ALL_QPS || stream->qpn == qpn));
}

/* Takes the first such stream out of the list; NULL: there is none. */
static struct stream *take(const struct ibv_context *context, uint32_t qpn)
{
	struct stream **link = &streams, *stream;

	flush_lock();
	while (*link && !is_of(*link, context, qpn))
		link = &(*link)->next;
	stream = *link;
	if (stream) {
		*link = stream->next;
		atomic_fetch_sub(&stream_count, 1);
	}
	flush_unlock();
	return stream;
}

void flush_end(const struct ibv_context *context, uint32_t qpn, void (*print)(const char *sentence))
{
	struct stream *stream;

	/* Each completion asks. */
	while (atomic_load(&stream_count) && (stream = take(context, qpn))) {
		tell(stream, print);
		free(stream);
	}
}
