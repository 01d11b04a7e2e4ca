/* SPDX-License-Identifier: MIT */
/* The parts of the page that need no browser: texts from patterns, headers from bytes, times. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import vm from "node:vm";

const PAGE = new URL("../../src/picture/page/", import.meta.url);

/* Runs scripts of the page, and returns the value of an expression in them. */
function inPage(names, expression) {
  const text = names.map((name) => readFileSync(new URL(name, PAGE), "utf8")).join("\n");
  return vm.runInNewContext(`${text}\n${expression}`, { performance, setTimeout });
}

const { splitPattern, Records } = inPage(["records.js"], "({ splitPattern, Records })");
const { decodeFrame, ipv6, opcodeName } = inPage(["headers.js"], "({ decodeFrame, ipv6, opcodeName })");
const { readTime, writeTime, Search } = inPage(["choice.js"], "({ readTime, writeTime, Search })");

function textOf(pattern, bytes) {
  return new Records(Uint8Array.from([0, ...bytes]), [splitPattern(pattern)]).text(0);
}

test("numbers come back as they were written", () => {
  assert.equal(textOf("PSN \x01, QP \x02", [100, 0x90, 0x01]), "PSN 100, QP 0x90");
  assert.equal(textOf("waits \x033 us", [0x84, 0x20]), "waits 4.100 us");
  assert.equal(textOf("\x032", [5]), "0.05");
  const most = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
  assert.equal(textOf("\x02", most), "0xffffffffffffffff");
  assert.equal(textOf("\x01", [0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x10]), String(2 ** 53));
});

/* A SEND_ONLY with an immediate and a pad of 3, over RoCE v2 and IPv4. */
const FRAME = Uint8Array.from(
  ("020000000002 020000000001 0800" +
    "45000034 00004000 401126a9 0a000001 0a000002" +
    "c100 12b7 0020 0000" +
    "05 b0 ffff 00 000012 80 000abc" +
    "0000cafe" + "42 000000" + "11223344").replaceAll(" ", "").match(/../g).map((byte) => parseInt(byte, 16)),
);

function fieldOf(headers, header, name) {
  return headers.find((one) => one.name === header).fields.find((field) => field.name === name);
}

test("a field is read from its bytes", () => {
  const headers = decodeFrame(FRAME, FRAME.length, false);
  assert.equal(headers.map(({ name }) => name).join(), "Ethernet,IPv4,UDP,BTH,ImmDt,payload,pad,ICRC");
  for (const [header, name, start, end, text] of [
    ["Ethernet", "source", 6, 12, "02:00:00:00:00:01"],
    ["IPv4", "destination", 30, 34, "10.0.0.2"],
    ["BTH", "opcode", 42, 43, "0x05 RC SEND_ONLY_WITH_IMMEDIATE"],
    ["BTH", "solicited", 43, 44, "yes"],
    ["BTH", "pad count", 43, 44, "3"],
    ["BTH", "destination QP", 47, 50, "0x12"],
    ["BTH", "ack request", 50, 51, "yes"],
    ["BTH", "PSN", 51, 54, "2748"],
    ["ImmDt", "immediate", 54, 58, "0x0000cafe"],
    ["ICRC", "ICRC", 62, 66, "0x11223344"],
  ]) {
    const field = fieldOf(headers, header, name);
    assert.deepEqual([field.start, field.end, field.text], [start, end, text], `${header} ${name}`);
  }
});

test("a frame that is cut has the headers that are whole", () => {
  for (let length = 0; length < FRAME.length; length++) {
    const headers = decodeFrame(FRAME.subarray(0, length), FRAME.length, false);
    assert.ok(headers.every(({ start, end }) => start <= end && end <= length));
  }
  const headers = decodeFrame(FRAME.subarray(0, 50), FRAME.length, false);
  assert.equal(headers.at(-1).name, "BTH (cut)");
});

test("addresses are written as RFC 5952 says", () => {
  const write = (text) => ipv6(0n, 128, Uint8Array.from(text.match(/../g).map((byte) => parseInt(byte, 16))));
  assert.equal(write("fe800000000000000000000000000001"), "fe80::1");
  assert.equal(write("00000000000000000000ffff0a000001"), "::ffff:10.0.0.1");
  assert.equal(write("20010db8000000010000000000000001"), "2001:db8:0:1::1");
  assert.equal(write("00000000000000000000000000000000"), "::");
  assert.equal(write("20010db8000100020003000400050006"), "2001:db8:1:2:3:4:5:6");
});

test("opcodes that a transport does not have are reserved", () => {
  assert.equal(opcodeName(0x04), "RC SEND_ONLY");
  assert.equal(opcodeName(0x64), "UD SEND_ONLY");
  assert.equal(opcodeName(0x60), "reserved");
  assert.equal(opcodeName(0x15), "reserved");
  assert.equal(opcodeName(0x81), "CNP");
});

test("times are read and written", () => {
  for (const [text, ns] of [["5", 5000], ["1.5ms", 1500000], ["2 s", 2e9], ["7ns", 7], ["0.25us", 250]]) {
    assert.equal(readTime(text), ns);
    assert.equal(readTime(writeTime(ns)), ns);
  }
  assert.ok(Number.isNaN(readTime("soon")));
});

test("a search reaches the last of many rows", async () => {
  const count = 25000;
  const texts = { patterns: [{ parts: ["row ", ""] }], number: () => 0 };
  const textAt = new Uint32Array(count);
  const search = new Search({ texts, textAt, count, text: (row) => `row ${row}` });
  await search.start(" ROW 24999", () => {});
  assert.deepEqual([...search.matches.keys()].filter((row) => search.matches[row]), [24999]);
  assert.equal(search.found, 1);
  assert.equal(search.countIn([24999, 24998]), 1);
  const first = search.start("row 1", () => {});
  await search.start("row 7", () => {});
  await first;
  assert.equal(search.matches[1], 0);
  assert.equal(search.matches[7], 1);
});
