/* SPDX-License-Identifier: MIT */
/* Rules and events as texts and as entries of a project, and each sentence that refuses one. */
#include "src/project/environment.h"
#include "src/project/failure.h"
#include "src/project/fault_rule.h"
#include "src/project/incident.h"
#include "unity.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct vb_project *project;
static struct vb_project_error error;

void setUp(void)
{
	project = vb_project_parse("p.yml", "", 0, &error);
	TEST_ASSERT_NOT_NULL(project);
	vb_project_add_devices(&project->sim, 2);
}

void tearDown(void)
{
	vb_project_free(project);
	unsetenv(VB_ENVIRONMENT_FAULT);
	unsetenv(VB_ENVIRONMENT_EVENTS);
}

static const struct vb_fault_rule *rule(const char *text)
{
	TEST_ASSERT_TRUE_MESSAGE(fault_rule_add(project, text, &error), error.text);
	return &project->sim.faults[project->sim.fault_count - 1];
}

static const struct vb_sim_event *event(const char *text)
{
	TEST_ASSERT_TRUE_MESSAGE(incident_add(project, text, &error), error.text);
	return &project->sim.events[project->sim.event_count - 1];
}

static void parse(const char *text)
{
	vb_project_free(project);
	project = vb_project_parse("p.yml", text, strlen(text), &error);
	TEST_ASSERT_NOT_NULL_MESSAGE(project, error.text);
}

void test_each_key_of_a_rule(void)
{
	const struct vb_fault_rule *r =
		rule("drop,from=sim1,psn=3,dest_qpn=0x11,skip=1,count=2,probability=0.25");

	TEST_ASSERT_EQUAL_INT(VB_FAULT_DROP, r->action);
	TEST_ASSERT_EQUAL_STRING("sim1", r->from);
	TEST_ASSERT_TRUE(r->psn_given);
	TEST_ASSERT_EQUAL_UINT32(3, r->psn);
	TEST_ASSERT_EQUAL_HEX32(0x11, r->dest_qpn);
	TEST_ASSERT_EQUAL_UINT64(1, r->skip);
	TEST_ASSERT_EQUAL_UINT64(2, r->count);
	TEST_ASSERT_TRUE(r->probability == 0.25);
	TEST_ASSERT_FALSE(r->opcode_given);
	r = rule("delay,delay=5ms");
	TEST_ASSERT_EQUAL_INT(VB_FAULT_DELAY, r->action);
	TEST_ASSERT_EQUAL_UINT64(5000000, r->delay_ns);
	TEST_ASSERT_NULL(r->from);
	TEST_ASSERT_FALSE(r->psn_given);
	r = rule("count=1,action=duplicate");
	TEST_ASSERT_EQUAL_INT(VB_FAULT_DUPLICATE, r->action);
	r = rule("corrupt,change=PKEY,value=0x1234,right_icrc");
	TEST_ASSERT_EQUAL_INT(VB_CHANGE_PKEY, r->change);
	TEST_ASSERT_EQUAL_HEX64(0x1234, r->value);
	TEST_ASSERT_TRUE(r->right_icrc);
	r = rule("corrupt,change=BTH_BYTE,offset=9,mask=0xf,flip=0x81,right_icrc=false");
	TEST_ASSERT_EQUAL_INT(VB_CHANGE_BTH_BYTE, r->change);
	TEST_ASSERT_EQUAL_UINT32(9, r->offset);
	TEST_ASSERT_EQUAL_HEX64(0xf, r->mask);
	TEST_ASSERT_EQUAL_HEX64(0x81, r->flip);
	TEST_ASSERT_FALSE(r->right_icrc);
	TEST_ASSERT_TRUE(rule("drop,probability=1")->probability == 1);
	TEST_ASSERT_TRUE(rule("drop,psn=0")->psn_given);
	TEST_ASSERT_EQUAL_UINT(7, project->sim.fault_count);
}

void test_rules_of_messages(void)
{
	const struct vb_fault_rule *r = rule("drop,message=SIDR_REP,count=1");

	TEST_ASSERT_EQUAL_INT(VB_FAULT_DROP, r->action);
	TEST_ASSERT_EQUAL_STRING("SIDR_REP", r->message);
	TEST_ASSERT_NULL(r->field);
	r = rule("reject,message=REQ,reason=28");
	TEST_ASSERT_EQUAL_INT(VB_FAULT_REJECT, r->action);
	TEST_ASSERT_EQUAL_UINT(28, r->reason);
	r = rule("corrupt,field=starting_psn,message=REP,value=7,right_icrc");
	TEST_ASSERT_EQUAL_INT(VB_CHANGE_MESSAGE_FIELD, r->change);
	TEST_ASSERT_EQUAL_STRING("starting_psn", r->field);
	TEST_ASSERT_EQUAL_UINT64(7, r->value);
	r = rule("corrupt,message=REQ,change=MESSAGE_FIELD,field=service_id,flip="
		 "0xffffffffffffffff");
	TEST_ASSERT_EQUAL_INT(VB_CHANGE_MESSAGE_FIELD, r->change);
	r = rule("corrupt,message=REQ,field=class,value=255");
	TEST_ASSERT_EQUAL_STRING("class", r->field);
	r = rule("corrupt,message=REQ,change=PKEY,value=1");
	TEST_ASSERT_EQUAL_INT(VB_CHANGE_PKEY, r->change);
	r = rule("corrupt,message=REQ");
	TEST_ASSERT_EQUAL_INT(VB_CHANGE_ANY_BIT, r->change);
}

void test_opcodes(void)
{
	static const struct {
		const char *text;
		uint8_t opcode;
		bool any_transport;
	} rows[] = {
		{"drop,opcode=RC SEND_LAST", 0x02, false},
		{"drop,opcode=UD SEND_ONLY", 0x64, false},
		{"drop,opcode=SEND_LAST", 0x02, true},
		{"drop,opcode=ATOMIC_WRITE", 0x1d, true},
		{"drop,opcode=RESYNC", 0x55, true},
		{"drop,opcode=CNP", 0x81, false},
		{"drop,opcode=0xa4", 0xa4, false},
		{"drop,opcode=0", 0, false},
		{"drop,opcode=255", 255, false},
	};

	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct vb_fault_rule *r = rule(rows[i].text);

		TEST_ASSERT_TRUE(r->opcode_given);
		TEST_ASSERT_EQUAL_INT_MESSAGE(rows[i].any_transport, r->any_transport,
					      rows[i].text);
		if (!r->any_transport)
			TEST_ASSERT_EQUAL_HEX8_MESSAGE(rows[i].opcode, r->opcode, rows[i].text);
		TEST_ASSERT_EQUAL_HEX8_MESSAGE(rows[i].opcode & 0x1f, r->opcode & 0x1f,
					       rows[i].text);
	}
}

void test_every_change_has_a_name(void)
{
	for (unsigned int change = 0; change < VB_CHANGE_MESSAGE_FIELD; change++) {
		char text[64];

		snprintf(text, sizeof(text), "corrupt,change=%s", vb_fault_change_name(change));
		TEST_ASSERT_EQUAL_INT(change, rule(text)->change);
	}
	TEST_ASSERT_NULL(vb_fault_change_name(VB_CHANGE_MESSAGE_FIELD + 1));
	TEST_ASSERT_NULL(vb_fault_action_name(VB_FAULT_REJECT + 1));
	TEST_ASSERT_EQUAL_HEX64(0xffff, vb_fault_change_max(VB_CHANGE_PKEY));
	TEST_ASSERT_EQUAL_HEX64(0xff, vb_fault_change_max(VB_CHANGE_FRAME_BYTE));
}

void test_each_key_of_an_event(void)
{
	const struct vb_sim_event *e = event("at=5ms,port=sim1/1,state=down");

	TEST_ASSERT_EQUAL_UINT64(5000000, e->at_ns);
	TEST_ASSERT_EQUAL_INT(VB_SIM_AT_PORT_STATE, e->kind);
	TEST_ASSERT_EQUAL_STRING("sim1", e->device);
	TEST_ASSERT_EQUAL_UINT(1, e->port_num);
	TEST_ASSERT_FALSE(e->up);
	TEST_ASSERT_TRUE(event("at=0,port=sim0/1,state=up")->up);
	e = event("device=sim0,state=fatal,at=7");
	TEST_ASSERT_EQUAL_INT(VB_SIM_AT_KILL_DEVICE, e->kind);
	TEST_ASSERT_EQUAL_STRING("sim0", e->device);
	e = event("at=1us,port=sim0/1,lid=0x12");
	TEST_ASSERT_EQUAL_INT(VB_SIM_AT_LID, e->kind);
	TEST_ASSERT_EQUAL_HEX16(0x12, e->lid);
	e = event("at=1us,port=sim0/1,pkey=0x8003,index=0");
	TEST_ASSERT_EQUAL_INT(VB_SIM_AT_PKEY, e->kind);
	TEST_ASSERT_EQUAL_HEX16(0x8003, e->pkey);
	TEST_ASSERT_EQUAL_UINT(0, e->index);
	e = event("at=1us,port=sim0/1,gid=10.0.0.9,index=63");
	TEST_ASSERT_EQUAL_INT(VB_SIM_AT_GID, e->kind);
	TEST_ASSERT_EQUAL_HEX8(0xff, e->gid.raw[11]);
	TEST_ASSERT_EQUAL_HEX8(9, e->gid.raw[15]);
	TEST_ASSERT_EQUAL_HEX8(0xfd, event("at=1,port=sim0/1,gid=fd00::1")->gid.raw[0]);
	e = event("at=1us,port=sim0/1,event=sm_change");
	TEST_ASSERT_EQUAL_INT(VB_SIM_AT_PORT_EVENT, e->kind);
	TEST_ASSERT_EQUAL_INT(IBV_EVENT_SM_CHANGE, e->type);
	TEST_ASSERT_EQUAL_INT(IBV_EVENT_CLIENT_REREGISTER,
			      event("at=1us,port=sim0/1,event=client_reregister")->type);
}

/* The message begins with the text itself. */
struct refused {
	const char *text;
	const char *message;
};

static void refuse(const struct refused *row,
		   bool (*add)(struct vb_project *, const char *, struct vb_project_error *))
{
	char message[512];

	snprintf(message, sizeof(message), "'%s': %s", row->text, row->message);
	TEST_ASSERT_FALSE_MESSAGE(add(project, row->text, &error), row->text);
	TEST_ASSERT_EQUAL_STRING(message, error.text);
}

static const struct refused wrong_rules[] = {
	{"dop", "action: 'dop' is unknown (allowed: drop, corrupt, duplicate, delay, reject)"},
	{"", "an entry is empty (take out a comma)"},
	{"drop,", "an entry is empty (take out a comma)"},
	{"count=1", "action: is missing (allowed: drop, corrupt, duplicate, delay, reject)"},
	{"drop,pns=1", "pns: unknown key (allowed: action, from, opcode, psn, dest_qpn, "
		       "message, skip, count, probability, delay, reason, change, field, "
		       "offset, value, mask, flip, right_icrc)"},
	{"drop,count=1,count=2", "count: given twice"},
	{"drop,action=drop", "action: given twice"},
	{"drop,psn", "psn: has no value (write psn=...)"},
	{"psn", "action: 'psn' is unknown (allowed: drop, corrupt, duplicate, delay, reject)"},
	{"drop,psn=", "psn: the value is 0 bytes long (1 to 79 are allowed)"},
	{"drop,from=sim2", "from: there is no device 'sim2' (allowed: sim0, sim1)"},
	{"drop,psn=16777216", "psn: '16777216' is out of range (0 to 16777215)"},
	{"drop,dest_qpn=0", "dest_qpn: '0' is out of range (1 to 16777215)"},
	{"drop,skip=x", "skip: 'x' is not a number (0 to 18446744073709551615)"},
	{"drop,count=01", "count: '01' begins with 0 (write it without, or 0x...)"},
	{"drop,count=0", "count: '0' is out of range (1 to 18446744073709551615)"},
	{"drop,probability=0", "probability: '0' is no probability (a number above 0, up to 1)"},
	{"drop,probability=1.01",
	 "probability: '1.01' is no probability (a number above 0, up to 1)"},
	{"drop,probability=0.1.1",
	 "probability: '0.1.1' is no probability (a number above 0, up to 1)"},
	{"drop,probability=1%", "probability: '1%' is no probability (a number above 0, up to 1)"},
	{"delay", "delay: is missing (a rule of the action 'delay' needs it)"},
	{"drop,delay=1ms", "delay: only a rule of the action 'delay' has it"},
	{"delay,delay=1h",
	 "delay: '1h' is not understood (nanoseconds, or a number with ns, us, ms or s)"},
	{"delay,delay=3601s", "delay: '3601s' is out of range (1 ns to 3600 s)"},
	{"delay,delay=0.5ns", "delay: '0.5ns' is finer than 1 ns"},
	{"drop,change=PSN", "change: only a rule of the action 'corrupt' has it"},
	{"drop,offset=1", "offset: only a rule of the action 'corrupt' has it"},
	{"drop,value=1", "value: only a rule of the action 'corrupt' has it"},
	{"drop,mask=1", "mask: only a rule of the action 'corrupt' has it"},
	{"drop,flip=1", "flip: only a rule of the action 'corrupt' has it"},
	{"drop,right_icrc", "right_icrc: only a rule of the action 'corrupt' has it"},
	{"corrupt,right_icrc=yes", "right_icrc: 'yes' is unknown (allowed: true, false)"},
	{"corrupt,change=PKEY,value=0x10000", "value: 0x10000 is wider than PKEY (0 to 0xffff)"},
	{"corrupt,change=BTH_BYTE,flip=256", "flip: 0x100 is wider than BTH_BYTE (0 to 0xff)"},
	{"corrupt,change=PSN,mask=0x1000000", "mask: 0x1000000 is wider than PSN (0 to 0xffffff)"},
};

static const struct refused wrong_rules_of_messages[] = {
	{"drop,message=req",
	 "message: 'req' is no message of the connection manager (allowed: REQ, MRA, REJ, "
	 "REP, RTU, DREQ, DREP, SIDR_REQ, SIDR_REP, LAP, APR)"},
	{"drop,message=NONE",
	 "message: 'NONE' is no message of the connection manager (allowed: REQ, MRA, REJ, "
	 "REP, RTU, DREQ, DREP, SIDR_REQ, SIDR_REP, LAP, APR)"},
	{"drop,message=REQ,reason=8", "reason: only a rule of the action 'reject' has it"},
	{"drop,message=REQ,field=srq", "field: only a rule of the action 'corrupt' has it"},
	{"reject,message=REQ", "reason: is missing (a rule of the action 'reject' needs it)"},
	{"reject,message=REQ,reason=0",
	 "reason: '0' is no reason of a REJ (1 to 65535, such as 28)"},
	{"reject,message=REQ,reason=65536",
	 "reason: '65536' is no reason of a REJ (1 to 65535, such as 28)"},
	{"reject,message=RTU,reason=8", "message: a rule of the action 'reject' needs REQ or REP"},
	{"reject,reason=8", "message: a rule of the action 'reject' needs REQ or REP"},
	{"corrupt,message=REQ,field=psn",
	 "field: 'psn' is no field of a message (docs/cm-messages.md names them)"},
	{"corrupt,message=RTU,field=starting_psn",
	 "field: the message RTU has no starting_psn (docs/cm-messages.md names them)"},
	{"corrupt,field=starting_psn", "message: is missing (field needs it)"},
	{"corrupt,message=REQ,change=PSN,field=starting_psn",
	 "field: change=PSN changes no field of a message"},
	{"corrupt,message=REQ,change=MESSAGE_FIELD",
	 "field: is missing (change=MESSAGE_FIELD needs it)"},
	{"corrupt,message=REQ,field=retry_count,value=8",
	 "value: 0x8 is wider than retry_count (0 to 0x7)"},
	{"corrupt,message=REQ,field=private_data,mask=256",
	 "mask: 0x100 is wider than private_data (0 to 0xff)"},
};

static void refuse_rules(const struct refused *rows, size_t count)
{
	for (size_t i = 0; i < count; i++)
		refuse(&rows[i], fault_rule_add);
	TEST_ASSERT_EQUAL_UINT(0, project->sim.fault_count);
}

void test_wrong_rules(void)
{
	refuse_rules(wrong_rules, sizeof(wrong_rules) / sizeof(wrong_rules[0]));
}

void test_wrong_rules_of_messages(void)
{
	refuse_rules(wrong_rules_of_messages,
		     sizeof(wrong_rules_of_messages) / sizeof(wrong_rules_of_messages[0]));
}

/* --- failing calls --- */

static const struct vb_failure *failure(const char *text)
{
	static struct vb_failures failures;

	failures.count = 0;
	TEST_ASSERT_TRUE_MESSAGE(failure_read(&failures, text, &error), error.text);
	TEST_ASSERT_EQUAL_UINT(1, failures.count);
	return failures.failures;
}

void test_failing_calls(void)
{
	const struct vb_fail_rule *r =
		&failure("create_qp,device=mlx5_0,skip=2,count=3,errno=EPERM")->rule;

	TEST_ASSERT_EQUAL_INT(VB_FAIL_CALL, r->action);
	TEST_ASSERT_EQUAL_STRING("create_qp", r->call);
	TEST_ASSERT_EQUAL_STRING("mlx5_0", r->device);
	TEST_ASSERT_EQUAL_UINT64(2, r->skip);
	TEST_ASSERT_EQUAL_UINT64(3, r->count);
	TEST_ASSERT_EQUAL_INT(EPERM, r->err);
	r = &failure("any")->rule;
	TEST_ASSERT_NULL(r->call);
	TEST_ASSERT_NULL(r->device);
	TEST_ASSERT_EQUAL_INT(0, r->err);
	TEST_ASSERT_EQUAL_UINT(7, failure("post_send,at=7")->rule.at);
	TEST_ASSERT_EQUAL_INT(12, failure("cm_connect,errno=12")->rule.err);
	TEST_ASSERT_EQUAL_INT(VB_FAIL_ALLOCATION, failure("allocation,skip=4")->rule.action);
	r = &failure("completion,status=RNR_RETRY_EXC_ERR,vendor_err=0x81,qpn=0x11,wr_id=0")->rule;
	TEST_ASSERT_EQUAL_INT(VB_FAIL_COMPLETION, r->action);
	TEST_ASSERT_EQUAL_INT(IBV_WC_RNR_RETRY_EXC_ERR, r->status);
	TEST_ASSERT_EQUAL_HEX(0x81, r->vendor_err);
	TEST_ASSERT_EQUAL_HEX(0x11, r->qpn);
	TEST_ASSERT_TRUE(r->wr_id_given);
	r = &failure("fail=made_completion,wr_id=9")->rule;
	TEST_ASSERT_EQUAL_INT(VB_FAIL_MADE, r->action);
	TEST_ASSERT_EQUAL_UINT64(9, r->wr_id);
	r = &failure("event,type=DEVICE_FATAL,call=poll_cq,port=2")->rule;
	TEST_ASSERT_EQUAL_INT(VB_FAIL_EVENT, r->action);
	TEST_ASSERT_EQUAL_INT(IBV_EVENT_DEVICE_FATAL, r->event);
	TEST_ASSERT_EQUAL_STRING("poll_cq", r->call);
	TEST_ASSERT_EQUAL_UINT(2, r->port_num);
}

static bool add_failure(struct vb_project *into, const char *text, struct vb_project_error *e)
{
	return failure_read(&into->failures, text, e);
}

void test_wrong_failing_calls(void)
{
	static const struct refused rows[] = {
		{"crete_qp", "fail: 'crete_qp' is no call that can fail (allowed: a verb such as "
			     "create_qp, a function of connections such as cm_connect, any, "
			     "allocation, descriptor, thread, completion, made_completion, event)"},
		{"skip=1", "fail: is missing (a call, any, allocation, descriptor, thread, "
			   "completion, made_completion or event)"},
		{"event,skip=1", "type: is missing (a rule of events needs it)"},
		{"event,type=QP_BAD",
		 "type: 'QP_BAD' is unknown (allowed: PORT_ERR, PORT_ACTIVE, SM_CHANGE, "
		 "CLIENT_REREGISTER, DEVICE_FATAL, QP_FATAL, QP_REQ_ERR, QP_ACCESS_ERR, "
		 "COMM_EST, SQ_DRAINED, PATH_MIG, PATH_MIG_ERR, QP_LAST_WQE_REACHED, CQ_ERR, "
		 "SRQ_ERR, SRQ_LIMIT_REACHED)"},
		{"any,type=PORT_ERR", "type: only a rule of events has it"},
		{"event,type=PORT_ERR,call=poll", "call: 'poll' is no call that can fail"},
		{"event,type=PORT_ERR,port=0", "port: '0' is out of range (1 to 255)"},
		{"any,errno=ENOENTE",
		 "errno: 'ENOENTE' is no errno value (allowed: a name such as ENOMEM, 1 to 4095)"},
		{"any,errno=0",
		 "errno: '0' is no errno value (allowed: a name such as ENOMEM, 1 to 4095)"},
		{"allocation,device=sim0",
		 "device: a rule of allocations, descriptors and threads has none"},
		{"descriptor,device=sim0",
		 "device: a rule of allocations, descriptors and threads has none"},
		{"completion,errno=EIO", "errno: only a rule of calls and descriptors has it"},
		{"thread,errno=EIO", "errno: only a rule of calls and descriptors has it"},
		{"any,object=1", "object: only a rule of events has it"},
		{"allocation,at=1", "at: only a rule of calls has it"},
		{"any,status=SUCCESS", "status: only a rule of completions has it"},
		{"modify_qp,at=1", "at: only post_send, post_recv and post_srq_recv have it"},
		{"any,device=a-name-that-is-longer-than-any-device",
		 "device: 'a-name-that-is-longer-than-any-device' is longer than 31 bytes"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		refuse(&rows[i], add_failure);
	TEST_ASSERT_EQUAL_UINT(0, project->failures.count);
}

void test_failing_calls_of_a_project(void)
{
	static const char text[] = ":verbena:\n"
				   "  failures:\n"
				   "    - {fail: create_qp, device: sim1, errno: EPERM}\n"
				   "    - completion,status=:GENERAL_ERR\n";
	struct vb_project *given = vb_project_parse("p.yml", text, sizeof(text) - 1, &error);

	TEST_ASSERT_NULL(given);
	TEST_ASSERT_NOT_NULL(strstr(error.text, "p.yml:4: failures[1]: status: ':GENERAL_ERR' is "
						"unknown (allowed: SUCCESS, LOC_LEN_ERR, "));
	given = vb_project_parse("p.yml", text,
				 strlen(text) - sizeof("    - completion,status=:GENERAL_ERR"),
				 &error);
	TEST_ASSERT_NOT_NULL_MESSAGE(given, error.text);
	TEST_ASSERT_EQUAL_UINT(1, given->failures.count);
	TEST_ASSERT_EQUAL_STRING("create_qp", given->failures.failures[0].rule.call);
	TEST_ASSERT_EQUAL_STRING("sim1", given->failures.failures[0].rule.device);
	TEST_ASSERT_EQUAL_INT(EPERM, given->failures.failures[0].rule.err);
	vb_project_free(given);
}

/* These name all that is possible. */
void test_wrong_names_get_a_list(void)
{
	TEST_ASSERT_FALSE(fault_rule_add(project, "drop,opcode=RC SEND", &error));
	TEST_ASSERT_NOT_NULL(strstr(error.text, "opcode: 'RC SEND' is no opcode (allowed: 0 to "
						"0xff, CNP, and with or without RC, UC, RD, UD or "
						"XRC before it: SEND_FIRST, "));
	TEST_ASSERT_NOT_NULL(strstr(error.text, ", ATOMIC_WRITE)"));
	TEST_ASSERT_FALSE(fault_rule_add(project, "drop,opcode=256", &error));
	TEST_ASSERT_NOT_NULL(strstr(error.text, "'256' is no opcode"));
	TEST_ASSERT_FALSE(fault_rule_add(project, "corrupt,change=pkey", &error));
	TEST_ASSERT_NOT_NULL(strstr(error.text, "change: 'pkey' is unknown (allowed: ANY_BIT, "));
	TEST_ASSERT_NOT_NULL(strstr(error.text, ", MESSAGE_FIELD)"));
}

void test_wrong_events(void)
{
	static const struct refused rows[] = {
		{"at=1", "0 things happen (give one of: state, lid, gid, pkey, event)"},
		{"at=1,port=sim0/1,lid=1,pkey=1",
		 "2 things happen (give one of: state, lid, gid, pkey, event)"},
		{"port=sim0/1,lid=1", "at: is missing (the time from the world's beginning)"},
		{"at=1,lid=1", "port: is missing (write port=NAME/NUMBER)"},
		{"at=1,device=sim0,lid=1",
		 "device: only state=fatal happens to a whole device (write port=NAME/NUMBER)"},
		{"at=1,port=sim0/1,state=fatal",
		 "port: state=fatal ends a whole device (write device=NAME)"},
		{"at=1,state=fatal", "device: is missing (state=fatal ends a device)"},
		{"down,at=1",
		 "down: unknown key (allowed: at, port, device, state, lid, gid, pkey, "
		 "index, event)"},
		{"at=x",
		 "at: 'x' is not understood (nanoseconds, or a number with ns, us, ms or s)"},
		{"port=sim0", "port: 'sim0' is no port (a device, '/' and a number: sim0/1)"},
		{"port=sim9/1", "port: there is no device 'sim9' (allowed: sim0, sim1)"},
		{"port=sim0/2", "port: device sim0 has no port '2' (1 to 1)"},
		{"device=sim9", "device: there is no device 'sim9' (allowed: sim0, sim1)"},
		{"state=armed", "state: 'armed' is unknown (allowed: down, up, fatal)"},
		{"lid=65536", "lid: '65536' is out of range (0 to 65535)"},
		{"pkey=x", "pkey: 'x' is not a number (0 to 65535)"},
		{"gid=10.0", "gid: '10.0' is not an address (IPv4 or IPv6)"},
		{"event=port_err",
		 "event: 'port_err' is unknown (allowed: client_reregister, sm_change)"},
		{"at=1,port=sim0/1,lid=1,index=1", "index: only gid and pkey have it"},
		{"index=64", "index: '64' is out of range (0 to 63)"},
		{"at=1,port=sim0/1,pkey=1,index=1",
		 "index: 1 is out of range (0 to 0, the P_Keys of sim0)"},
	};

	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		refuse(&rows[i], incident_add);
	TEST_ASSERT_EQUAL_UINT(0, project->sim.event_count);
}

void test_entries_of_a_project(void)
{
	parse(":verbena:\n"
	      "  faults:\n"
	      "    - drop,from=sim0,opcode=SEND_LAST,count=1\n"
	      "    - :action: :corrupt\n"
	      "      :change: PKEY\n"
	      "      value: 0x1234\n"
	      "      right_icrc: true\n"
	      "  events:\n"
	      "    - {at: 5ms, port: sim0/1, state: down}\n"
	      "    - at=6ms,port=sim0/1,state=up\n");
	TEST_ASSERT_EQUAL_UINT(2, project->sim.fault_count);
	TEST_ASSERT_EQUAL_STRING("sim0", project->sim.faults[0].from);
	TEST_ASSERT_TRUE(project->sim.faults[0].any_transport);
	TEST_ASSERT_EQUAL_INT(VB_FAULT_CORRUPT, project->sim.faults[1].action);
	TEST_ASSERT_EQUAL_HEX64(0x1234, project->sim.faults[1].value);
	TEST_ASSERT_TRUE(project->sim.faults[1].right_icrc);
	TEST_ASSERT_EQUAL_UINT(2, project->sim.event_count);
	TEST_ASSERT_EQUAL_UINT64(5000000, project->sim.events[0].at_ns);
	TEST_ASSERT_TRUE(project->sim.events[1].up);
	parse(":verbena:\n"
	      "  devices: [{name: a, pkeys: [0xffff, 0x8001]}]\n"
	      "  events: [{at: 1, port: a/1, pkey: 7, index: 1}]\n");
	TEST_ASSERT_EQUAL_UINT(1, project->sim.events[0].index);
	/* Faults stand before the devices that they name. */
	parse(":verbena:\n  faults: [{action: drop, from: b}]\n  devices: [{name: a}, {name: "
	      "b}]\n");
	TEST_ASSERT_EQUAL_STRING("b", project->sim.faults[0].from);
}

void test_a_project_names_the_line(void)
{
	static const struct refused rows[] = {
		{":verbena:\n  faults:\n    - drop\n    - {action: drop,\n       psn: 1x}\n",
		 "p.yml:5: faults[1].psn: '1x' is not a number (0 to 16777215)"},
		{":verbena:\n  faults:\n    - drop\n    - drop,psn=1x\n",
		 "p.yml:4: faults[1]: psn: '1x' is not a number (0 to 16777215)"},
		{":verbena:\n  faults:\n    - {psn: 1}\n",
		 "p.yml:3: faults[0]: action: is missing (allowed: drop, corrupt, duplicate, "
		 "delay, reject)"},
		{":verbena:\n  faults:\n    - {action: [drop]}\n",
		 "p.yml:3: faults[0].action: is a list (a text is wanted)"},
		{":verbena:\n  faults: drop\n", "p.yml:2: faults: is a text (a list is wanted)"},
		{":verbena:\n  events:\n    - {at: 1, port: sim0/1, state: armed}\n",
		 "p.yml:3: events[0].state: 'armed' is unknown (allowed: down, up, fatal)"},
		{":verbena:\n  events: [[]]\n", "p.yml:2: events[0]: is a list (a text is wanted)"},
	};

	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		TEST_ASSERT_NULL(
			vb_project_parse("p.yml", rows[i].text, strlen(rows[i].text), &error));
		TEST_ASSERT_EQUAL_STRING(rows[i].message, error.text);
	}
}

void test_lists_end(void)
{
	for (unsigned int i = 0; i < 64; i++) {
		rule("drop");
		event("at=1,port=sim0/1,lid=1");
	}
	refuse(&(struct refused){"drop", "more than 64 rules"}, fault_rule_add);
	refuse(&(struct refused){"at=1,port=sim0/1,lid=1", "more than 64 events"}, incident_add);
}

void test_variables(void)
{
	vb_project_free(project);
	setenv(VB_ENVIRONMENT_FAULT, "drop,count=1;delay,delay=5", 1);
	setenv(VB_ENVIRONMENT_EVENTS, "at=1,port=sim0/1,lid=1;at=2,port=sim0/1,lid=2", 1);
	project = vb_environment_load(&error);
	TEST_ASSERT_NOT_NULL_MESSAGE(project, error.text);
	TEST_ASSERT_EQUAL_UINT(2, project->sim.fault_count);
	TEST_ASSERT_EQUAL_INT(VB_FAULT_DELAY, project->sim.faults[1].action);
	TEST_ASSERT_EQUAL_UINT(2, project->sim.event_count);
	TEST_ASSERT_EQUAL_UINT(2, project->sim.events[1].lid);
	setenv(VB_ENVIRONMENT_FAULT, "drop;drop,psn=x", 1);
	TEST_ASSERT_NULL(vb_environment_load(&error));
	TEST_ASSERT_EQUAL_STRING(
		"VERBENA_FAULT: 'drop,psn=x': psn: 'x' is not a number (0 to 16777215)",
		error.text);
	unsetenv(VB_ENVIRONMENT_FAULT);
	setenv(VB_ENVIRONMENT_EVENTS, "at=1", 1);
	TEST_ASSERT_NULL(vb_environment_load(&error));
	TEST_ASSERT_EQUAL_STRING(
		"VERBENA_EVENTS: 'at=1': 0 things happen (give one of: state, lid, "
		"gid, pkey, event)",
		error.text);
}
