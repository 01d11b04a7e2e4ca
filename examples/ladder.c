/* SPDX-License-Identifier: MIT */
/*
 * Sources: Wireshark epan/dissectors/packet-infiniband.c for the layout of the Base Transport Header
 * and its extension headers.
 */
#include "ladder.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define WIDTH_DEFAULT  100 /* without a terminal */
#define WIDTH_MIN      60
#define OUTER_COLUMNS  20 /* the time and both rails */
#define LOST_COLUMNS   14 /* where a lost packet does not go */
#define TEXT_MAX       256
#define ETHERNET_BYTES 14
#define UDP_BYTES      8
#define BTH_BYTES      12
#define AETH_BYTES     4
#define ICRC_BYTES     4

enum paint { PLAIN, BOLD, RED, GREEN, YELLOW, CYAN, PAINTS };

static const char *const codes[PAINTS] = {"\033[0m",  "\033[1m",  "\033[31m",
					  "\033[32m", "\033[33m", "\033[36m"};

/* The name of an RC opcode, and the bytes of the headers after its BTH. */
struct opcode {
	const char *name;
	unsigned int header_bytes;
};

static const struct opcode opcodes[] = {
	[0x00] = {"SEND First", 0},
	[0x01] = {"SEND Middle", 0},
	[0x02] = {"SEND Last", 0},
	[0x04] = {"SEND Only", 0},
	[0x06] = {"RDMA WRITE First", 16},
	[0x07] = {"RDMA WRITE Middle", 0},
	[0x08] = {"RDMA WRITE Last", 0},
	[0x0a] = {"RDMA WRITE Only", 16},
	[0x0c] = {"RDMA READ Request", 16},
	[0x0d] = {"RDMA READ Response First", AETH_BYTES},
	[0x0e] = {"RDMA READ Response Middle", 0},
	[0x0f] = {"RDMA READ Response Last", AETH_BYTES},
	[0x10] = {"RDMA READ Response Only", AETH_BYTES},
	[0x11] = {"Acknowledge", AETH_BYTES},
	[0x12] = {"ATOMIC Acknowledge", AETH_BYTES + 8},
	[0x13] = {"COMPARE SWAP", 28},
	[0x14] = {"FETCH ADD", 28},
};

#define RC_ACKNOWLEDGE	  0x11
#define RC_READ_REQUEST	  0x0c
#define RC_ATOMIC_ACK	  0x12
#define OPCODES		  (sizeof(opcodes) / sizeof(opcodes[0]))
#define SYNDROME_KIND	  0xe0
#define SYNDROME_RNR_NAK  0x20
#define SYNDROME_NAK	  0x60
#define SYNDROME_CODE	  0x1f
#define RETH_LENGTH_BYTES 12 /* offset of the DMA length in an RETH */

static const char *const nak_names[] = {"PSN sequence error", "invalid request",
					"remote access error", "remote operational error"};

/* The variable COLUMNS, else the terminal's width. */
static int line_columns(void)
{
	const char *text = getenv("COLUMNS");
	const long wanted = text ? strtol(text, NULL, 10) : 0;
	struct winsize size;
	int columns = WIDTH_DEFAULT;

	if (wanted > 0 && wanted <= UINT16_MAX)
		columns = (int)wanted;
	else if (!ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_col)
		columns = size.ws_col;
	return columns < WIDTH_MIN ? WIDTH_MIN : columns;
}

void ladder_start(struct ladder *ladder)
{
	const char *no_colour = getenv("NO_COLOR"), *term = getenv("TERM");

	*ladder = (struct ladder){
		.inner_columns = line_columns() - OUTER_COLUMNS,
		.colour = isatty(STDOUT_FILENO) && term && strcmp(term, "dumb") != 0 &&
			  !(no_colour && *no_colour),
	};
}

static const char *paint(const struct ladder *ladder, enum paint which)
{
	return ladder->colour ? codes[which] : "";
}

void ladder_chapter(const struct ladder *ladder, const char *title)
{
	printf("\n%s%s%s\n", paint(ladder, BOLD), title, paint(ladder, PLAIN));
}

void ladder_rails(const struct ladder *ladder, const char *left, const char *right)
{
	printf("%16s%s%s%*s%s\n", "", paint(ladder, BOLD), left,
	       ladder->inner_columns + 2 - (int)strlen(left), right, paint(ladder, PLAIN));
}

static void print_time(uint64_t now_ns)
{
	printf("%8llu.%03llu us  ", (unsigned long long)(now_ns / 1000),
	       (unsigned long long)(now_ns % 1000));
}

void ladder_note(const struct ladder *ladder, uint64_t now_ns, enum ladder_side side,
		 enum ladder_mood mood, const char *fmt, ...)
{
	static const enum paint paints[] = {
		[LADDER_PLAIN] = PLAIN, [LADDER_GOOD] = GREEN, [LADDER_BAD] = RED};
	const int columns = ladder->inner_columns - 2;
	char text[TEXT_MAX];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	print_time(now_ns);
	if (side == LADDER_LEFT)
		printf("| %s%-*.*s%s |\n", paint(ladder, paints[mood]), columns, columns, text,
		       paint(ladder, PLAIN));
	else
		printf("| %s%*.*s%s |\n", paint(ladder, paints[mood]), columns, columns, text,
		       paint(ladder, PLAIN));
}

static uint32_t load_be24(const uint8_t *at)
{
	return (uint32_t)at[0] << 16 | (uint32_t)at[1] << 8 | at[2];
}

static uint32_t load_be32(const uint8_t *at)
{
	return (uint32_t)at[0] << 24 | load_be24(at + 1);
}

/* The fields of a packet that a rung shows. */
struct rung {
	const struct opcode *opcode;
	uint8_t number;
	uint8_t syndrome;
	bool asks_ack;
	uint32_t psn;
	uint32_t payload_bytes;
	uint32_t dma_bytes;
};

/* Returns false if the frame is not a complete RC packet. */
static bool read_frame(const uint8_t *frame, size_t length_bytes, struct rung *rung)
{
	size_t ip_bytes = frame[12] == 0x08 ? 20 : 40;
	const uint8_t *bth = frame + ETHERNET_BYTES + ip_bytes + UDP_BYTES;
	size_t fixed_bytes = ETHERNET_BYTES + ip_bytes + UDP_BYTES + BTH_BYTES + ICRC_BYTES;

	if (length_bytes < fixed_bytes || bth[0] >= OPCODES || !opcodes[bth[0]].name)
		return false;
	*rung = (struct rung){
		.opcode = &opcodes[bth[0]],
		.number = bth[0],
		.asks_ack = bth[8] & 0x80,
		.psn = load_be24(bth + 9),
	};
	fixed_bytes += rung->opcode->header_bytes + (bth[1] >> 4 & 3); /* with the pad bytes */
	if (length_bytes < fixed_bytes)
		return false;
	rung->payload_bytes = (uint32_t)(length_bytes - fixed_bytes);
	if (rung->opcode->header_bytes == 16)
		rung->dma_bytes = load_be32(bth + BTH_BYTES + RETH_LENGTH_BYTES);
	if (rung->number == RC_ACKNOWLEDGE)
		rung->syndrome = bth[BTH_BYTES];
	return true;
}

static bool is_nak(const struct rung *rung)
{
	return (rung->syndrome & SYNDROME_KIND) != 0;
}

static void describe_ack(const struct rung *rung, char *text, size_t room)
{
	unsigned int code = rung->syndrome & SYNDROME_CODE;

	if ((rung->syndrome & SYNDROME_KIND) == SYNDROME_RNR_NAK)
		snprintf(text, room, "RNR NAK  PSN %u, timer code %u", rung->psn, code);
	else if ((rung->syndrome & SYNDROME_KIND) == SYNDROME_NAK)
		snprintf(text, room, "NAK  PSN %u, %s", rung->psn,
			 code < 4 ? nak_names[code] : "unknown code");
	else
		snprintf(text, room, "%s  PSN %u", rung->opcode->name, rung->psn);
}

static void describe(const struct rung *rung, char *text, size_t room)
{
	if (rung->number == RC_ACKNOWLEDGE)
		describe_ack(rung, text, room);
	else if (rung->number == RC_READ_REQUEST)
		snprintf(text, room, "%s  PSN %u, %u bytes", rung->opcode->name, rung->psn,
			 rung->dma_bytes);
	else if (rung->number >= RC_ATOMIC_ACK)
		snprintf(text, room, "%s  PSN %u, 8 bytes", rung->opcode->name, rung->psn);
	else
		snprintf(text, room, "%s  PSN %u, %u bytes%s", rung->opcode->name, rung->psn,
			 rung->payload_bytes, rung->asks_ack ? ", asks for an ACK" : "");
}

static void dashes(int count)
{
	while (count-- > 0)
		putchar('-');
}

/* Draws a rung; that of a lost packet does not reach the other rail. A long text is cut. */
static void draw(const struct ladder *ladder, const char *text, enum ladder_side from, bool lost,
		 enum paint colour)
{
	const int room = ladder->inner_columns - 5 - (lost ? LOST_COLUMNS : 0);
	const int length = (int)strnlen(text, (size_t)room);

	printf("|%s", paint(ladder, colour));
	if (from == LADDER_LEFT) {
		printf("-- %.*s ", length, text);
		dashes(room - length);
		printf("%s", lost ? "X  lost        " : ">");
	} else {
		printf("%s", lost ? "        lost  X" : "<");
		dashes(room - length);
		printf(" %.*s --", length, text);
	}
	printf("%s|\n", paint(ladder, PLAIN));
}

void ladder_frame(void *arg, uint64_t now_ns, const uint8_t *frame, size_t length_bytes, bool lost)
{
	struct ladder *ladder = arg;
	enum ladder_side from = frame[11] == 1 ? LADDER_LEFT : LADDER_RIGHT;
	char text[TEXT_MAX] = "a packet that this program cannot decode";
	struct rung rung = {0};

	if (read_frame(frame, length_bytes, &rung))
		describe(&rung, text, sizeof(text));
	ladder->packets++;
	ladder->naks[from] += is_nak(&rung);
	print_time(now_ns);
	draw(ladder, text, from, lost, lost ? YELLOW : is_nak(&rung) ? RED : CYAN);
}
