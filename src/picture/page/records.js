/* SPDX-License-Identifier: MIT */
/* Texts as patterns and numbers: src/picture/pattern.h writes them. */
"use strict";

const MARK_DECIMAL = 1;
const MARK_HEX = 2;
const MARK_FRACTION = 3;

/* Splits a pattern into the texts around its numbers, and how each number is written. */
function splitPattern(pattern) {
  const parts = [""];
  const forms = [];
  for (let at = 0; at < pattern.length; at++) {
    const code = pattern.charCodeAt(at);
    if (code < MARK_DECIMAL || code > MARK_FRACTION) {
      parts[parts.length - 1] += pattern[at];
      continue;
    }
    if (code === MARK_FRACTION) {
      at++;
      forms.push({ mark: code, digits: Number(pattern[at]) });
    } else {
      forms.push({ mark: code, digits: 0 });
    }
    parts.push("");
  }
  return { parts, forms };
}

function numberText(form, number) {
  if (form.mark === MARK_HEX) {
    return "0x" + number.toString(16);
  }
  if (form.mark === MARK_DECIMAL) {
    return String(number);
  }
  const digits = String(number).padStart(form.digits + 1, "0");
  return digits.slice(0, -form.digits) + "." + digits.slice(-form.digits);
}

/* Reads the texts of one section. */
class Records {
  constructor(bytes, patterns) {
    this.bytes = bytes;
    this.patterns = patterns; /* of splitPattern() */
    this.at = 0;
  }

  /* Reads a number of 7 bits a byte, the lowest first. Numbers from 2^53 are BigInt. */
  number() {
    const bytes = this.bytes;
    let byte = bytes[this.at++];
    let number = byte & 0x7f;
    let scale = 128;
    while (byte & 0x80 && scale < 2 ** 49) {
      byte = bytes[this.at++];
      number += (byte & 0x7f) * scale;
      scale *= 128;
    }
    if (!(byte & 0x80)) {
      return number;
    }
    let large = BigInt(number);
    for (let shift = 49n; byte & 0x80; shift += 7n) {
      byte = bytes[this.at++];
      large |= BigInt(byte & 0x7f) << shift;
    }
    return large;
  }

  /* Returns the text whose record begins at the offset. */
  text(offset) {
    this.at = offset;
    const { parts, forms } = this.patterns[this.number()];
    let text = parts[0];
    for (let i = 0; i < forms.length; i++) {
      text += numberText(forms[i], this.number()) + parts[i + 1];
    }
    return text;
  }
}
