-- SPDX-License-Identifier: MIT
-- Verbena in Wireshark (docs/wireshark.md): events of a log as frames between packets, names for the
-- opcodes of InfiniBand that Wireshark does not know, and marks on packets that are sent again.
--
-- `verbena trace annotate` writes an event as a frame of the link type USER15:
--
--	{"verbena":1,"text":"QP 0x11: post_send 0x1 SEND","failed":false,"event":{...}}
--
-- "text" is the row of `verbena trace show`, "event" the line of the log (docs/event-log.md).

local verbena = Proto("verbena", "Verbena")

-- Fields ------------------------------------------------------------------------------------------------

-- The members of events: their types. A member is the field verbena.NAME, the verb is verbena.call.
local event_types = {
	n = "decimal", t = "decimal", kind = "text", device = "text", port = "decimal", qp = "qp",
	-- left_out
	events = "decimal",
	-- verb
	verb = "text", result = "text", errno = "text", lkey = "hex32", rkey = "hex32",
	duration_ns = "decimal",
	-- completion
	cq = "text", wr_id = "hex", status = "text", opcode = "text", bytes = "decimal", flags = "text",
	imm = "hex32", invalidated_rkey = "hex32", source_qp = "qp", vendor_err = "hex32",
	-- connection
	event = "text", id = "text", listener = "text", private_bytes = "decimal",
	-- packet, state, async, timer, fault, failure, rewind, port, moderation
	lost = "flag", injected = "flag", from = "text", to = "text", by = "text", object = "text",
	timer = "text", what = "text", psn = "decimal", wait_ns = "decimal", retries_left = "decimal",
	action = "text", rule = "decimal", queue = "text", sent_psn = "decimal",
	completions = "decimal", period_ns = "decimal",
}

-- The members of "packet": verbena.packet.NAME.
local packet_types = {
	opcode = "text", psn = "decimal", dest_qp = "qp", source_qp = "qp", pkey = "hex32",
	payload_bytes = "decimal", ack_request = "flag", solicited = "flag", source_gid = "text",
	dest_gid = "text", slid = "decimal", dlid = "decimal", remote_addr = "hex", rkey = "hex32",
	dma_bytes = "decimal", syndrome = "text", msn = "decimal", imm = "hex32",
	invalidate_rkey = "hex32", qkey = "hex32", swap_add = "hex", compare = "hex", original = "hex",
	xrc_srqn = "qp",
}

-- The members of "why" and "peer_why".
local why_types = {name = "text", number = "hex32", text = "text"}

local makers = {
	decimal = function(name, title) return ProtoField.uint64(name, title, base.DEC) end,
	hex = function(name, title) return ProtoField.uint64(name, title, base.HEX) end,
	hex32 = function(name, title) return ProtoField.uint32(name, title, base.HEX) end,
	qp = function(name, title) return ProtoField.uint24(name, title, base.HEX) end,
	flag = function(name, title) return ProtoField.bool(name, title) end,
	text = function(name, title) return ProtoField.string(name, title) end,
}

local all = {}
local function own(field)
	table.insert(all, field)
	return field
end

local function fields_of(types, prefix)
	local made = {}
	for name, kind in pairs(types) do
		local word = name == "verb" and "call" or name
		made[name] = {kind = kind, field = own(makers[kind](prefix .. word, word))}
	end
	return made
end

local known = {
	event = fields_of(event_types, "verbena."),
	packet = fields_of(packet_types, "verbena.packet."),
	why = fields_of(why_types, "verbena.why."),
	peer_why = fields_of(why_types, "verbena.peer_why."),
}
local text_field = own(ProtoField.string("verbena.text", "text"))
local failed_field = own(ProtoField.bool("verbena.failed", "failed"))
local arg_field = own(ProtoField.string("verbena.arg", "argument", base.UNICODE,
	"an argument of the call, as name=value"))
local other_field = own(ProtoField.string("verbena.other", "other", base.UNICODE,
	"a member that this plugin does not know, as name=value"))
local again_field = own(ProtoField.bool("verbena.retransmission", "retransmission", base.NONE, nil, nil,
	"the request has been sent before"))
local first_field = own(ProtoField.framenum("verbena.retransmission_of", "first sent in", base.NONE,
	frametype.RETRANS_PREV))
local answer_field = own(ProtoField.bool("verbena.repeated_answer", "repeated answer", base.NONE, nil, nil,
	"the same answer to this request has been sent before"))
local answered_field = own(ProtoField.framenum("verbena.repeated_answer_of", "first answered in", base.NONE,
	frametype.DUP_ACK))
verbena.fields = all

local failure = ProtoExpert.new("verbena.failure", "Verbena: a failure", expert.group.RESPONSE_CODE,
	expert.severity.WARN)
local wrong = ProtoExpert.new("verbena.wrong", "Verbena: the event cannot be read", expert.group.MALFORMED,
	expert.severity.ERROR)
verbena.experts = {failure, wrong}

-- JSON --------------------------------------------------------------------------------------------------

-- A value is {value, first, last}: where it stands in the frame, from 1. An object has members in order,
-- each {key, value}.
local escapes = {b = "\b", f = "\f", n = "\n", r = "\r", t = "\t"}

local function utf8(code)
	if code < 0x80 then
		return string.char(code)
	elseif code < 0x800 then
		return string.char(0xc0 + math.floor(code / 64), 0x80 + code % 64)
	end
	return string.char(0xe0 + math.floor(code / 4096), 0x80 + math.floor(code / 64) % 64, 0x80 + code % 64)
end

local function read_string(text, at)
	local parts, from = {}, at + 1
	while true do
		local stop = text:find('["\\]', from)
		if not stop then
			error("a string without an end")
		end
		table.insert(parts, text:sub(from, stop - 1))
		if text:sub(stop, stop) == '"' then
			return table.concat(parts), stop
		end
		local letter = text:sub(stop + 1, stop + 1)
		if letter == "u" then
			table.insert(parts, utf8(tonumber(text:sub(stop + 2, stop + 5), 16)))
			from = stop + 6
		else
			table.insert(parts, escapes[letter] or letter)
			from = stop + 2
		end
	end
end

local function expect(text, at, letter)
	if text:sub(at, at) ~= letter then
		error("no " .. letter .. " at byte " .. at)
	end
end

local read_value

local function read_members(text, at, close, has_keys)
	local members = {}
	at = text:find("%S", at + 1)
	while text:sub(at, at) ~= close do
		local key
		if has_keys then
			expect(text, at, '"')
			key, at = read_string(text, at)
			at = text:find("%S", at + 1)
			expect(text, at, ":")
			at = text:find("%S", at + 1)
		end
		local value = read_value(text, at)
		table.insert(members, {key = key, value = value})
		at = text:find("%S", value.last + 1)
		if text:sub(at, at) ~= close then
			expect(text, at, ",")
			at = text:find("%S", at + 1)
		end
	end
	return members, at
end

function read_value(text, at)
	local letter = text:sub(at, at)
	local value = {first = at}
	if letter == '"' then
		value.string, value.last = read_string(text, at)
	elseif letter == "{" then
		value.object, value.last = read_members(text, at, "}", true)
	elseif letter == "[" then
		value.array, value.last = read_members(text, at, "]", false)
	else
		value.word = text:match("^[%w%.+-]+", at) or error("no value at byte " .. at)
		value.last = at + #value.word - 1
	end
	return value
end

local function member(object, key)
	for _, one in ipairs(object and object.object or {}) do
		if one.key == key then
			return one.value
		end
	end
end

-- Members as fields -------------------------------------------------------------------------------------

local function number_of(value)
	local text = value.string or value.word
	local digits = text:match("^0x(%x+)$")
	if digits then
		return UInt64.fromhex(digits)
	end
	return text:match("^%d+$") and UInt64.new(tonumber(text) % 2 ^ 32, math.floor(tonumber(text) / 2 ^ 32))
end

local function range_of(tvb, value)
	return tvb:range(value.first - 1, value.last - value.first + 1)
end

-- Adds a leaf as a field. Returns false if its value has another type.
local function add_field(tvb, tree, known_field, value)
	local range, field = range_of(tvb, value), known_field.field
	if known_field.kind == "text" then
		tree:add(field, range, value.string or value.word)
		return true
	elseif known_field.kind == "flag" then
		tree:add(field, range, value.word == "true")
		return true
	end
	local number = (value.string or value.word) and number_of(value)
	if not number then
		return false
	end
	local is_short = known_field.kind == "hex32" or known_field.kind == "qp"
	tree:add(field, range, is_short and number:tonumber() or number)
	return true
end

-- Adds the arguments of a call: each leaf is verbena.arg with its path. The work requests also have
-- verbena.wr_id and verbena.opcode.
local function add_arguments(tvb, tree, path, value)
	for i, one in ipairs(value.object or value.array or {}) do
		local below = one.value
		local name = one.key and (path == "" and one.key or path .. "." .. one.key) or path
		if below.object or below.array then
			local label = one.key or tostring(i)
			add_arguments(tvb, tree:add(range_of(tvb, below), label), name, below)
		else
			local text = name .. "=" .. (below.string or below.word)
			local item = tree:add(arg_field, range_of(tvb, below), text)
			item:set_text(text)
			if one.key == "wr_id" or one.key == "opcode" then
				add_field(tvb, item, known.event[one.key], below)
			end
		end
	end
end

local function add_members(tvb, tree, object, types)
	for _, one in ipairs(object.object or {}) do
		local key, value = one.key, one.value
		local range = range_of(tvb, value)
		if key == "args" then
			add_arguments(tvb, tree:add(range, "Arguments"), "", value)
		elseif value.object and known[key] then
			add_members(tvb, tree:add(range, key), value, known[key])
		elseif value.array and types[key] then
			for _, element in ipairs(value.array) do
				add_field(tvb, tree, types[key], element.value)
			end
		elseif value.object or value.array or not types[key] or not add_field(tvb, tree, types[key], value) then
			tree:add(other_field, range, key .. "=" .. range:raw())
		end
	end
end

-- Events ------------------------------------------------------------------------------------------------

-- "destination QP": "source > destination": what was sent to this QP from there. `requests` has the frame in which
-- a PSN was first sent, `answers` that of an answer, `reads` the last READs by the end of their memory.
local streams = {}
-- "source > destination": PSN: the READs with this PSN. The answer to a READ tells the path MTU, and does not name
-- the READ's destination QP.
local asked = {}
local repeats = {} -- frame numbers of retransmissions: the frame in which the request was first sent
local repeated_answers = {} -- frame numbers of answers: the frame in which the answer was first sent

-- A QP that begins anew has other PSNs: "QPN" of the QP to which they go.
local function forget_streams(event)
	local kind, to = member(event, "kind"), member(event, "to")
	local qp = member(event, "qp")
	if kind and kind.string == "state" and to and to.string == "INIT" and qp then
		local number = number_of(qp)
		streams[number and number:tonumber() or 0] = nil
	end
end

local function show_event(tvb, pinfo, tree, frame)
	local event = member(frame, "event")
	local text, failed = member(frame, "text"), member(frame, "failed")
	local device = member(event, "device")
	local top = tree:add(verbena, tvb(), "Verbena: " .. text.string)

	pinfo.cols.protocol = "Verbena"
	pinfo.cols.info = text.string
	pinfo.cols.src = device and device.string or "program"
	pinfo.cols.dst = ""
	top:add(text_field, range_of(tvb, text), text.string)
	local item = top:add(failed_field, range_of(tvb, failed), failed.word == "true")
	if failed.word == "true" then
		item:add_proto_expert_info(failure, text.string)
	end
	add_members(tvb, top, event, known.event)
	if not pinfo.visited then
		forget_streams(event)
	end
end

local function is_ours(tvb)
	return tvb:len() > 12 and tvb:range(0, 12):raw() == '{"verbena":1'
end

local others -- what decodes frames of USER15 that are not Verbena's

function verbena.dissector(tvb, pinfo, tree)
	if not is_ours(tvb) then
		return others and others:call(tvb, pinfo, tree) or 0
	end
	local good, frame = pcall(read_value, tvb:range():raw(), 1)
	if good and member(frame, "event") and member(frame, "text") and member(frame, "failed") then
		show_event(tvb, pinfo, tree, frame)
	else
		pinfo.cols.protocol = "Verbena"
		pinfo.cols.info = "The event cannot be read: " .. (good and "a member is missing" or tostring(frame))
		tree:add(verbena, tvb()):add_proto_expert_info(wrong)
	end
	return tvb:len()
end

function verbena.init()
	streams, asked, repeats, repeated_answers = {}, {}, {}, {}
end

local encapsulations = DissectorTable.get("wtap_encap")
others = encapsulations:get_dissector(wtap.USER15)
encapsulations:add(wtap.USER15, verbena)

-- Packets -----------------------------------------------------------------------------------------------

local transports = {[0] = "RC", [1] = "UC", [2] = "RD", [3] = "UD", [4] = "CNP", [5] = "XRC"}

-- By the low five bits of the opcode of the BTH: the name, and the headers behind the BTH.
local operations = {
	[0x00] = {"SEND_FIRST"}, [0x01] = {"SEND_MIDDLE"}, [0x02] = {"SEND_LAST"},
	[0x03] = {"SEND_LAST_WITH_IMMEDIATE", "imm"}, [0x04] = {"SEND_ONLY"},
	[0x05] = {"SEND_ONLY_WITH_IMMEDIATE", "imm"}, [0x06] = {"RDMA_WRITE_FIRST", "reth"},
	[0x07] = {"RDMA_WRITE_MIDDLE"}, [0x08] = {"RDMA_WRITE_LAST"},
	[0x09] = {"RDMA_WRITE_LAST_WITH_IMMEDIATE", "imm"}, [0x0a] = {"RDMA_WRITE_ONLY", "reth"},
	[0x0b] = {"RDMA_WRITE_ONLY_WITH_IMMEDIATE", "reth", "imm"}, [0x0c] = {"RDMA_READ_REQUEST", "reth"},
	[0x0d] = {"RDMA_READ_RESPONSE_FIRST", "aeth", answer = true},
	[0x0e] = {"RDMA_READ_RESPONSE_MIDDLE", answer = true},
	[0x0f] = {"RDMA_READ_RESPONSE_LAST", "aeth", answer = true},
	[0x10] = {"RDMA_READ_RESPONSE_ONLY", "aeth", answer = true},
	[0x11] = {"ACKNOWLEDGE", "aeth", answer = true},
	[0x12] = {"ATOMIC_ACKNOWLEDGE", "aeth", "original", answer = true},
	[0x13] = {"COMPARE_SWAP", "atomic"}, [0x14] = {"FETCH_ADD", "atomic"},
	[0x16] = {"SEND_LAST_WITH_INVALIDATE", "ieth"}, [0x17] = {"SEND_ONLY_WITH_INVALIDATE", "ieth"},
	[0x1c] = {"FLUSH"}, [0x1d] = {"ATOMIC_WRITE", "reth"},
}

local BTH_BYTES = 12
local header_bytes = {xrceth = 4, imm = 4, reth = 16, aeth = 4, original = 8, atomic = 28, ieth = 4}

-- The fields of headers: name, offset, length.
local header_fields = {
	xrceth = {{"xrc_srqn", 1, 3}}, imm = {{"imm", 0, 4}}, ieth = {{"invalidate_rkey", 0, 4}},
	reth = {{"remote_addr", 0, 8}, {"rkey", 8, 4}, {"dma_bytes", 12, 4}},
	aeth = {{"msn", 1, 3}}, original = {{"original", 0, 8}},
	atomic = {{"remote_addr", 0, 8}, {"rkey", 8, 4}, {"swap_add", 12, 8}, {"compare", 20, 8}},
}

-- Syndromes of the AETH, as the log writes them. RNR timers are in units of 0.01 ms.
local naks = {[0] = "PSN sequence error", "invalid request", "remote access error",
	"remote operational error", "invalid RD request"}
local rnr_units = {[0] = 65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768,
	1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152}

local function syndrome_text(syndrome)
	local kind, value = bit.band(syndrome, 0xe0), bit.band(syndrome, 0x1f)
	if kind == 0x00 then
		return "ACK"
	elseif kind == 0x20 then
		return string.format("RNR NAK (%d.%02d ms)", math.floor(rnr_units[value] / 100), rnr_units[value] % 100)
	elseif kind == 0x60 then
		return "NAK: " .. (naks[value] or "reserved code " .. value)
	end
	return string.format("reserved syndrome 0x%02x", syndrome)
end

local bth_of = Field.new("infiniband.bth")
local opcode_of = Field.new("infiniband.bth.opcode")
local psn_of = Field.new("infiniband.bth.psn")
local dest_of = Field.new("infiniband.bth.destqp")

local packets = Proto("verbena_packets", "Verbena: packets")

local function add_header(tree, range, name)
	for _, row in ipairs(header_fields[name]) do
		tree:add(known.packet[row[1]].field, range:range(row[2], row[3]))
	end
end

-- Shows the headers of a packet whose opcode Wireshark does not know.
local function show_headers(tvb, tree, at, operation, is_xrc)
	local names = {}
	if is_xrc and not operation.answer then
		table.insert(names, "xrceth")
	end
	for _, name in ipairs(operation) do
		table.insert(names, name)
	end
	table.remove(names, is_xrc and not operation.answer and 2 or 1) -- the operation's own name
	for _, name in ipairs(names) do
		if at + header_bytes[name] > tvb:len() then
			return
		end
		add_header(tree, tvb:range(at, header_bytes[name]), name)
		at = at + header_bytes[name]
	end
end

local function way(source, dest)
	return tostring(source) .. " > " .. tostring(dest)
end

local function stream_of(pinfo, dest)
	local from = way(pinfo.src, pinfo.dst)
	streams[dest] = streams[dest] or {}
	streams[dest][from] = streams[dest][from] or {requests = {}, answers = {}, reads = {}}
	return streams[dest][from]
end

local READS_KEPT = 128 -- of the same end: more than a QP may have outstanding

-- Finds the READ that a READ request continues. A requester that has got a part of the answer asks for the rest:
-- the request has the PSN of the first packet that is missing, and the address of its bytes (InfiniBand specification,
-- 9.7.5.1.2 is unsourced here; Linux drivers/infiniband/sw/rxe/rxe_req.c, req_retry()).
local function find_continued(reads, read)
	for _, before in ipairs(reads) do
		local packets = (read.psn - before.psn) % 2 ^ 24
		if before.mtu and packets > 0 and before.bytes - read.bytes == packets * before.mtu then
			return before
		end
	end
end

-- Returns the frame of the READ that this one continues, if there is one. Otherwise the READ is kept.
local function note_read(pinfo, tvb, at, psn, stream)
	if at + header_bytes.reth > tvb:len() then
		return
	end
	local read = {psn = psn, bytes = tvb:range(at + 12, 4):uint(), frame = pinfo.number}
	local last = tvb:range(at, 8):uint64() + UInt64.new(read.bytes, 0)
	local key = last:tohex() .. tvb:range(at + 8, 4):bytes():tohex()
	local from = way(pinfo.src, pinfo.dst)
	stream.reads[key] = stream.reads[key] or {}
	local before = find_continued(stream.reads[key], read)
	read.frame = before and before.frame or read.frame
	table.insert(stream.reads[key], 1, read)
	stream.reads[key][READS_KEPT + 1] = nil
	asked[from] = asked[from] or {}
	asked[from][psn] = {read, (asked[from][psn] or {})[1]}
	return before and before.frame
end

-- The first packet of an answer that has several is as long as the path MTU.
local function note_mtu(pinfo, tvb, at, psn)
	local mtu = 256
	while mtu < 4096 and at + header_bytes.aeth + 2 * mtu <= tvb:len() do
		mtu = 2 * mtu
	end
	for _, read in ipairs((asked[way(pinfo.dst, pinfo.src)] or {})[psn] or {}) do
		read.mtu = mtu
	end
end

local function note_request(pinfo, tvb, at, operation, psn, dest)
	local stream = stream_of(pinfo, dest)
	local first = stream.requests[psn]
	if operation[1] == "RDMA_READ_REQUEST" then
		first = note_read(pinfo, tvb, at, psn, stream) or first
	end
	if first then
		repeats[pinfo.number] = first
	end
	stream.requests[psn] = first or pinfo.number
end

-- The packets of READ responses repeat each other if they have the same PSN, acknowledges if they also say the same.
local function note_answer(pinfo, tvb, at, operation, psn, dest)
	local stream, key = stream_of(pinfo, dest), psn .. " " .. operation[1]
	if operation[1]:match("^RDMA_READ_RESPONSE") then
		key = psn .. " READ"
	elseif at < tvb:len() then
		key = key .. bit.band(tvb:range(at, 1):uint(), 0x60)
	end
	repeated_answers[pinfo.number] = stream.answers[key]
	stream.answers[key] = stream.answers[key] or pinfo.number
	if operation[1] == "RDMA_READ_RESPONSE_FIRST" then
		note_mtu(pinfo, tvb, at, psn)
	end
end

-- Adds a flag, and the frame that this one repeats.
local function add_mark(top, range, flag, of, first)
	top:add(flag, range, first ~= nil):set_generated()
	if first then
		top:add(of, range, first):set_generated()
	end
end

local function show_repeats(pinfo, tvb, top, operation, is_xrc)
	local at = bth_of().offset + BTH_BYTES
	local psn, dest = psn_of(), dest_of().value
	if operation.answer then
		if not pinfo.visited then
			note_answer(pinfo, tvb, at, operation, psn.value, dest)
		end
		add_mark(top, psn.range, answer_field, answered_field, repeated_answers[pinfo.number])
		return
	end
	if not pinfo.visited then
		note_request(pinfo, tvb, at + (is_xrc and header_bytes.xrceth or 0), operation, psn.value, dest)
	end
	add_mark(top, psn.range, again_field, first_field, repeats[pinfo.number])
end

local function has_aeth(operation)
	for _, name in ipairs(operation) do
		if name == "aeth" then
			return true
		end
	end
end

-- Adds the syndrome as text, and a NAK's to the column, too, unless Wireshark has put it there in brackets.
local function show_syndrome(tvb, pinfo, tree, at)
	local syndrome = tvb:range(at, 1)
	local text = syndrome_text(syndrome:uint())
	tree:add(known.packet.syndrome.field, syndrome, text)
	local info = tostring(pinfo.cols.info):match("^(.-)%s*$")
	if text ~= "ACK" and info:sub(-1) ~= "]" then
		pinfo.cols.info = info .. ", " .. text
	end
end

function packets.dissector(tvb, pinfo, tree)
	local opcode = opcode_of()
	if not opcode then
		return
	end
	local transport = transports[bit.rshift(opcode.value, 5)]
	local operation = operations[bit.band(opcode.value, 0x1f)]
	local is_unknown = tostring(pinfo.cols.info):find("Unknown OpCode", 1, true)
	if transport == "CNP" then
		operation = {"CNP"}
	end
	if not transport or not operation then
		return
	end
	local name = transport == "CNP" and "CNP" or transport .. " " .. operation[1]
	local top = tree:add(packets, opcode.range, "Verbena: " .. name)
	top:add(known.packet.opcode.field, opcode.range, name)
	if transport == "RC" or transport == "XRC" then
		show_repeats(pinfo, tvb, top, operation, transport == "XRC")
	end
	if is_unknown then
		show_headers(tvb, top, bth_of().offset + BTH_BYTES, operation, transport == "XRC")
		pinfo.cols.info = name .. " QP=" .. dest_of().display
	end
	local after = bth_of().offset + BTH_BYTES
	if has_aeth(operation) and after + header_bytes.aeth <= tvb:len() then
		show_syndrome(tvb, pinfo, top, after)
	end
end

register_postdissector(packets)
