/* SPDX-License-Identifier: MIT */
/*
 * Decodes a frame into headers, and these into fields that know their bytes. A field's value is read from
 * those bytes and no others.
 *
 * Sources: Ethernet, IPv4 (RFC 791), IPv6 (RFC 8200), UDP (RFC 768); the BTH and its extension headers as
 * in Linux drivers/infiniband/sw/rxe/rxe_hdr.h, the LRH and the GRH as in Linux
 * drivers/infiniband/core/ud_header.c, the header of management datagrams as in Linux include/rdma/ib_mad.h.
 */
"use strict";

/* --- forms of values --- */

const decimal = (value) => String(value);
const hex = (value, bits) => "0x" + value.toString(16).padStart(Math.ceil(bits / 4), "0");
const hexShort = (value) => "0x" + value.toString(16);
const yes = (value) => (Number(value) ? "yes" : "no");

function mac(value, bits, bytes) {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join(":");
}

function ipv4(value, bits, bytes) {
  return bytes.join(".");
}

/* An address of 16 bytes as RFC 5952 writes it. */
function ipv6(value, bits, bytes) {
  if (bytes.slice(0, 10).every((byte) => !byte) && bytes[10] === 0xff && bytes[11] === 0xff) {
    return "::ffff:" + bytes.slice(12).join(".");
  }
  const groups = [];
  for (let i = 0; i < 16; i += 2) {
    groups.push(((bytes[i] << 8) | bytes[i + 1]).toString(16));
  }
  const runs = [...groups.join(":").matchAll(/\b0(:0)+\b/g)].sort((a, b) => b[0].length - a[0].length);
  if (!runs.length) {
    return groups.join(":");
  }
  const text = groups.join(":");
  const before = text.slice(0, runs[0].index).replace(/:$/, "");
  const after = text.slice(runs[0].index + runs[0][0].length).replace(/^:/, "");
  return before + "::" + after;
}

/* --- names of values --- */

const TRANSPORTS = { 0: "RC", 1: "UC", 2: "RD", 3: "UD", 5: "XRC" };

const OPERATIONS = [
  "SEND_FIRST", "SEND_MIDDLE", "SEND_LAST", "SEND_LAST_WITH_IMMEDIATE", "SEND_ONLY", "SEND_ONLY_WITH_IMMEDIATE",
  "RDMA_WRITE_FIRST", "RDMA_WRITE_MIDDLE", "RDMA_WRITE_LAST", "RDMA_WRITE_LAST_WITH_IMMEDIATE", "RDMA_WRITE_ONLY",
  "RDMA_WRITE_ONLY_WITH_IMMEDIATE", "RDMA_READ_REQUEST", "RDMA_READ_RESPONSE_FIRST", "RDMA_READ_RESPONSE_MIDDLE",
  "RDMA_READ_RESPONSE_LAST", "RDMA_READ_RESPONSE_ONLY", "ACKNOWLEDGE", "ATOMIC_ACKNOWLEDGE", "COMPARE_SWAP",
  "FETCH_ADD", "RESYNC", "SEND_LAST_WITH_INVALIDATE", "SEND_ONLY_WITH_INVALIDATE", null, null, null, null, null,
  "ATOMIC_WRITE",
];

/* The operations that each transport has; RD has no INVALIDATE, but RESYNC. */
const HAS = {
  RC: (operation) => operation !== 0x15,
  UC: (operation) => operation <= 0x0b,
  RD: (operation) => operation <= 0x15,
  UD: (operation) => operation === 0x04 || operation === 0x05,
  XRC: (operation) => operation !== 0x15,
};

function opcodeName(opcode) {
  const transport = TRANSPORTS[opcode >> 5];
  const operation = OPERATIONS[opcode & 0x1f];
  if (opcode === 0x81) {
    return "CNP";
  }
  return transport && operation && HAS[transport](opcode & 0x1f) ? transport + " " + operation : "reserved";
}

const RNR_TIMERS_MS = [
  655.36, 0.01, 0.02, 0.03, 0.04, 0.06, 0.08, 0.12, 0.16, 0.24, 0.32, 0.48, 0.64, 0.96, 1.28, 1.92, 2.56, 3.84,
  5.12, 7.68, 10.24, 15.36, 20.48, 30.72, 40.96, 61.44, 81.92, 122.88, 163.84, 245.76, 327.68, 491.52,
];

const NAKS = [
  "PSN sequence error", "invalid request", "remote access error", "remote operational error", "invalid RD request",
];

function syndrome(value) {
  const low = value & 0x1f;
  const what = value >> 5;
  if (what === 0) {
    return hexShort(value) + " ACK" + (low === 31 ? ", no credits given" : ", credit code " + low);
  }
  if (what === 1) {
    return hexShort(value) + " RNR NAK, " + RNR_TIMERS_MS[low] + " ms";
  }
  return hexShort(value) + (what === 3 ? " NAK: " + (NAKS[low] || "reserved") : " reserved");
}

const MAD_CLASSES = { 0x01: "subnet, LID routed", 0x03: "subnet administration", 0x07: "connection manager" };

const CM_MESSAGES = {
  0x10: "REQ", 0x11: "MRA", 0x12: "REJ", 0x13: "REP", 0x14: "RTU", 0x15: "DREQ", 0x16: "DREP", 0x17: "SIDR_REQ",
  0x18: "SIDR_REP", 0x19: "LAP", 0x1a: "APR",
};

const named = (names) => (value) => hexShort(value) + (names[value] ? " " + names[value] : "");

/* --- fields --- */

/* Reads headers one behind the other. */
class Frame {
  constructor(bytes, length) {
    this.bytes = bytes;
    this.length = length; /* of the whole frame, which the page may have in part */
    this.at = 0;
    this.headers = [];
  }

  left() {
    return this.bytes.length - this.at;
  }

  /*
   * Adds a header. Each field is [name, bits, form]; a form of null is a reserved field. Returns the
   * values by name, or null if the bytes are too few.
   */
  header(name, fields) {
    const bits = fields.reduce((sum, field) => sum + field[1], 0);
    const start = this.at;
    if (this.left() < bits / 8) {
      this.headers.push({ name: name + " (cut)", start, end: this.bytes.length, fields: [] });
      this.at = this.bytes.length;
      return null;
    }
    const values = {};
    const list = [];
    let bit = start * 8;
    for (const [fieldName, width, form] of fields) {
      const field = this.field(fieldName, bit, width, form);
      values[fieldName] = field.value;
      bit += width;
      if (form !== null) {
        list.push(field);
      }
    }
    this.at = start + bits / 8;
    this.headers.push({ name, start, end: this.at, fields: list });
    return values;
  }

  /* A field of any bits; its bytes are those that the bits are in. */
  field(name, bit, width, form) {
    const start = bit >> 3;
    const end = (bit + width + 7) >> 3;
    const bytes = this.bytes.subarray(start, end);
    let value = 0n;
    for (const byte of bytes) {
      value = (value << 8n) | BigInt(byte);
    }
    value >>= BigInt(end * 8 - bit - width);
    value &= (1n << BigInt(width)) - 1n;
    if (width <= 48) {
      value = Number(value);
    }
    return { name, start, end, bit, width, value, text: form ? form(value, width, bytes) : "" };
  }

  /* Adds bytes that are no header. */
  rest(name, length) {
    const start = this.at;
    const end = Math.min(start + length, this.bytes.length);
    if (end > start) {
      const bytes = `${length} byte${length === 1 ? "" : "s"}`;
      const text = end - start < length ? `${bytes}, ${end - start} shown` : bytes;
      this.headers.push({ name, start, end, text, fields: [] });
      this.at = end;
    }
  }
}

/* --- headers --- */

const ETHERNET = [["destination", 48, mac], ["source", 48, mac], ["type", 16, hex]];

const IPV4 = [
  ["version", 4, decimal], ["header words", 4, decimal], ["DSCP", 6, decimal], ["ECN", 2, decimal],
  ["total length", 16, decimal], ["identification", 16, hex], ["reserved", 1, null], ["don't fragment", 1, yes],
  ["more fragments", 1, yes], ["fragment offset", 13, decimal], ["time to live", 8, decimal],
  ["protocol", 8, decimal], ["checksum", 16, hex], ["source", 32, ipv4], ["destination", 32, ipv4],
];

const IPV6 = [
  ["version", 4, decimal], ["traffic class", 8, hex], ["flow label", 20, hex], ["payload length", 16, decimal],
  ["next header", 8, hex], ["hop limit", 8, decimal], ["source", 128, ipv6], ["destination", 128, ipv6],
];

const UDP = [
  ["source port", 16, decimal], ["destination port", 16, decimal], ["length", 16, decimal], ["checksum", 16, hex],
];

const LRH = [
  ["virtual lane", 4, decimal], ["link version", 4, decimal], ["service level", 4, decimal], ["reserved 1", 2, null],
  ["next header", 2, decimal], ["destination LID", 16, decimal], ["reserved 2", 5, null],
  ["length in words", 11, decimal], ["source LID", 16, decimal],
];

const BTH = [
  ["opcode", 8, (value) => hex(value, 8) + " " + opcodeName(value)], ["solicited", 1, yes], ["migrated", 1, yes],
  ["pad count", 2, decimal], ["version", 4, decimal], ["P_Key", 16, hex], ["FECN", 1, yes], ["BECN", 1, yes],
  ["reserved 1", 6, null], ["destination QP", 24, hexShort], ["ack request", 1, yes], ["reserved 2", 7, null],
  ["PSN", 24, decimal],
];

const RETH = [["remote address", 64, hex], ["rkey", 32, hex], ["DMA length", 32, decimal]];
const AETH = [["syndrome", 8, syndrome], ["MSN", 24, decimal]];
const ATOMIC_ETH = [["remote address", 64, hex], ["rkey", 32, hex], ["swap or add", 64, hex], ["compare", 64, hex]];
const ATOMIC_ACK_ETH = [["original data", 64, hex]];
const IMMDT = [["immediate", 32, hex]];
const IETH = [["rkey to invalidate", 32, hex]];
const DETH = [["Q_Key", 32, hex], ["reserved", 8, null], ["source QP", 24, hexShort]];
const RDETH = [["reserved", 8, null], ["EE context", 24, hexShort]];
const XRCETH = [["reserved", 8, null], ["SRQ number", 24, hexShort]];

const MAD = [
  ["base version", 8, decimal], ["class", 8, named(MAD_CLASSES)], ["class version", 8, decimal], ["method", 8, hex],
  ["status", 16, hex], ["class specific", 16, hex], ["transaction", 64, hex],
  ["attribute", 16, named(CM_MESSAGES)], ["reserved", 16, null], ["attribute modifier", 32, hex],
];

const UDP_PORT_ROCE = 4791;
const ICRC_BYTES = 4;
const VCRC_BYTES = 2;

/* The headers behind the BTH, in their order, by the name of the opcode. */
function extensions(name) {
  const list = [];
  const add = (pattern, header, fields) => pattern.test(name) && list.push([header, fields]);
  add(/^RD /, "RDETH", RDETH);
  add(/^UD |^RD (SEND|RDMA_WRITE|RDMA_READ_REQUEST|COMPARE|FETCH|RESYNC)/, "DETH", DETH);
  add(/^XRC (SEND|RDMA_WRITE|RDMA_READ_REQUEST|ATOMIC_WRITE|COMPARE|FETCH)/, "XRCETH", XRCETH);
  add(/RDMA_WRITE_(FIRST|ONLY)|READ_REQUEST|ATOMIC_WRITE/, "RETH", RETH);
  add(/COMPARE_SWAP|FETCH_ADD/, "AtomicETH", ATOMIC_ETH);
  add(/ACKNOWLEDGE|READ_RESPONSE_(FIRST|LAST|ONLY)/, "AETH", AETH);
  add(/ATOMIC_ACKNOWLEDGE/, "AtomicAckETH", ATOMIC_ACK_ETH);
  add(/IMMEDIATE/, "ImmDt", IMMDT);
  add(/INVALIDATE/, "IETH", IETH);
  return list;
}

function decodePayload(frame, length, deth) {
  if (deth && deth["source QP"] === 1 && length === 256) {
    frame.header("MAD", MAD);
    frame.rest("MAD data", length - 24);
  } else {
    frame.rest("payload", length);
  }
}

/* Decodes from the BTH on; `end` is the offset behind the ICRC. */
function decodeTransport(frame, end) {
  const bth = frame.header("BTH", BTH);
  let deth = null;
  if (!bth) {
    return;
  }
  for (const [name, fields] of extensions(opcodeName(bth.opcode))) {
    const values = frame.header(name, fields);
    deth = name === "DETH" ? values : deth;
  }
  const payload = end - ICRC_BYTES - bth["pad count"] - frame.at;
  decodePayload(frame, Math.max(payload, 0), deth);
  if (frame.at === end - ICRC_BYTES - bth["pad count"]) {
    frame.rest("pad", bth["pad count"]);
    if (frame.left() >= ICRC_BYTES) {
      frame.header("ICRC", [["ICRC", 32, hex]]);
    }
  }
}

/* Returns the offset behind the IP datagram, or -1 if the frame is not RoCE. */
function decodeIp(frame, type) {
  const start = frame.at;
  if (type === 0x8915) {
    const grh = frame.header("GRH", IPV6);
    return grh ? frame.at + grh["payload length"] : -1;
  }
  const four = type === 0x0800;
  const ip = frame.header(four ? "IPv4" : "IPv6", four ? IPV4 : IPV6);
  const udp = ip && frame.header("UDP", UDP);
  if (!udp || udp["destination port"] !== UDP_PORT_ROCE) {
    return -1;
  }
  return four ? start + ip["total length"] : start + 40 + ip["payload length"];
}

function decodeEthernet(frame) {
  const ethernet = frame.header("Ethernet", ETHERNET);
  const known = ethernet && [0x0800, 0x86dd, 0x8915].includes(ethernet.type);
  const end = known ? decodeIp(frame, ethernet.type) : -1;
  if (end >= 0) {
    decodeTransport(frame, end);
  }
  frame.rest("trailer", frame.length - frame.at);
}

function decodeInfiniband(frame) {
  const lrh = frame.header("LRH", LRH);
  if (lrh && lrh["next header"] === 3) {
    frame.header("GRH", IPV6);
  }
  if (lrh && lrh["next header"] >= 2) {
    decodeTransport(frame, lrh["length in words"] * 4);
  }
  if (frame.left() === VCRC_BYTES && frame.bytes.length === frame.length) {
    frame.header("VCRC", [["VCRC", 16, hex]]);
  }
}

/* Returns the headers of a frame: {name, start, end, fields, text}. */
function decodeFrame(bytes, length, infiniband) {
  const frame = new Frame(bytes, length);
  if (infiniband) {
    decodeInfiniband(frame);
  } else {
    decodeEthernet(frame);
  }
  return frame.headers;
}
