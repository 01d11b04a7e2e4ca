/* SPDX-License-Identifier: MIT */
/*
 * One case a verb: a call whose arguments all differ, the function that the call must reach, and
 * the arguments that must arrive there.
 */
#include "test/ibverbs/cases.h"

#define WORD(pointer) ((uintptr_t)(pointer))

const struct vb_backend *backend = &vb_backend_ibverbs;

struct verbs_context a_vctx;
struct ibv_device a_device;
struct ibv_mw a_mw;
struct ibv_mw_bind a_mw_bind;
struct ibv_qp_ex a_qp_ex;
struct ibv_pd a_pd;
struct ibv_srq a_srq;
struct ibv_qp_init_attr_ex a_qp_init_attr_ex;
struct ibv_srq_init_attr_ex a_srq_init_attr_ex;
struct ibv_ops_wr a_ops_wr;
struct ibv_ops_wr *a_ops_wr_p;
struct ibv_wq_init_attr a_wq_init_attr;

static __be16 a___be16;
static char a_buffer[64];
static int a_int;
static struct ibv_ah a_ah;
static struct ibv_ah_attr a_ah_attr;
static struct ibv_alloc_dm_attr a_alloc_dm_attr;
static struct ibv_async_event a_async_event;
static struct ibv_comp_channel a_comp_channel;
static struct ibv_counter_attach_attr a_counter_attach_attr;
static struct ibv_counters a_counters;
static struct ibv_counters_init_attr a_counters_init_attr;
static struct ibv_cq *a_cq_p;
static struct ibv_cq a_cq;
static struct ibv_cq_init_attr_ex a_cq_init_attr_ex;
static struct ibv_device *a_device_p;
static struct ibv_device_attr a_device_attr;
static struct ibv_device_attr_ex a_device_attr_ex;
static struct ibv_dm a_dm;
static struct ibv_ece a_ece;
static struct ibv_flow a_flow;
static struct ibv_flow_action a_flow_action;
static struct ibv_flow_action_esp_attr a_flow_action_esp_attr;
static struct ibv_flow_attr a_flow_attr;
static struct ibv_gid_entry a_gid_entry;
static struct ibv_grh a_grh;
static struct ibv_modify_cq_attr a_modify_cq_attr;
static struct ibv_mr a_mr;
static struct ibv_parent_domain_init_attr a_parent_domain_init_attr;
static struct ibv_port_attr a_port_attr;
static struct ibv_qp_attr a_qp_attr;
static struct ibv_qp_init_attr a_qp_init_attr;
static struct ibv_qp_open_attr a_qp_open_attr;
static struct ibv_qp_rate_limit_attr a_qp_rate_limit_attr;
static struct ibv_query_device_ex_input a_query_device_ex_input;
static struct ibv_recv_wr *a_recv_wr_p;
static struct ibv_recv_wr a_recv_wr;
static struct ibv_rwq_ind_table a_rwq_ind_table;
static struct ibv_rwq_ind_table_init_attr a_rwq_ind_table_init_attr;
static struct ibv_send_wr *a_send_wr_p;
static struct ibv_send_wr a_send_wr;
static struct ibv_sge a_sge;
static struct ibv_srq_attr a_srq_attr;
static struct ibv_srq_init_attr a_srq_init_attr;
static struct ibv_td a_td;
static struct ibv_td_init_attr a_td_init_attr;
static struct ibv_values_ex a_values_ex;
static struct ibv_wc a_wc;
static struct ibv_wq a_wq;
static struct ibv_wq_attr a_wq_attr;
static struct ibv_xrcd a_xrcd;
static struct ibv_xrcd_init_attr a_xrcd_init_attr;
static uint16_t a_uint16_t;
static uint32_t a_uint32_t;
static uint64_t a_uint64_t;
static uint8_t a_mac[ETHERNET_LL_SIZE];
static union ibv_gid a_gid;
static void *a_void_p;

void cases_set_up(void)
{
	a_pd.context = &a_vctx.context;
	a_td.context = &a_vctx.context;
	a_xrcd.context = &a_vctx.context;
	a_mr.context = &a_vctx.context;
	a_dm.context = &a_vctx.context;
	a_qp_ex.qp_base.context = &a_vctx.context;
	a_mw.context = &a_vctx.context;
	a_comp_channel.context = &a_vctx.context;
	a_cq.context = &a_vctx.context;
	a_srq.context = &a_vctx.context;
	a_ah.context = &a_vctx.context;
	a_wq.context = &a_vctx.context;
	a_rwq_ind_table.context = &a_vctx.context;
	a_flow.context = &a_vctx.context;
	a_flow_action.context = &a_vctx.context;
	a_counters.context = &a_vctx.context;

	/* These attributes need the extended verbs. */
	a_qp_init_attr_ex.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_XRCD;
	a_srq_init_attr_ex.comp_mask = IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD;
	a_mw.type = IBV_MW_TYPE_1;
	memset(&a_mw_bind, 0, sizeof(a_mw_bind));
	a_query_device_ex_input.comp_mask = 0;
}

static uint64_t call_get_device_list(void)
{
	return (uintptr_t)backend->get_device_list(&a_int);
}

static uint64_t call_free_device_list(void)
{
	backend->free_device_list(&a_device_p);
	return 0;
}

static uint64_t call_get_device_name(void)
{
	return (uintptr_t)backend->get_device_name(&a_device);
}

static uint64_t call_get_device_index(void)
{
	return (uint64_t)backend->get_device_index(&a_device);
}

static uint64_t call_get_device_guid(void)
{
	return (uint64_t)backend->get_device_guid(&a_device);
}

static uint64_t call_open_device(void)
{
	return (uintptr_t)backend->open_device(&a_device);
}

static uint64_t call_close_device(void)
{
	return (uint64_t)backend->close_device(&a_vctx.context);
}

static uint64_t call_import_device(void)
{
	return (uintptr_t)backend->import_device(-64);
}

static uint64_t call_query_device(void)
{
	return (uint64_t)backend->query_device(&a_vctx.context, &a_device_attr);
}

static uint64_t call_query_device_ex(void)
{
	return (uint64_t)backend->query_device_ex(&a_vctx.context, &a_query_device_ex_input,
						  &a_device_attr_ex, 0x200000003);
}

static uint64_t call_query_port(void)
{
	return (uint64_t)backend->query_port(&a_vctx.context, 0xf1, &a_port_attr, 0x200000003);
}

static uint64_t call_query_gid(void)
{
	return (uint64_t)backend->query_gid(&a_vctx.context, 0xf1, -66, &a_gid);
}

static uint64_t call_query_gid_ex(void)
{
	return (uint64_t)backend->query_gid_ex(&a_vctx.context, 0x81000011, 0x81000012,
					       &a_gid_entry, 0x81000014, 0x200000005);
}

static uint64_t call_query_gid_table(void)
{
	return (uint64_t)backend->query_gid_table(&a_vctx.context, &a_gid_entry, 0x200000002,
						  0x81000013, 0x200000004);
}

static uint64_t call_query_pkey(void)
{
	return (uint64_t)backend->query_pkey(&a_vctx.context, 0xf1, -66, &a___be16);
}

static uint64_t call_get_pkey_index(void)
{
	return (uint64_t)backend->get_pkey_index(&a_vctx.context, 0xf1, 0xfff2);
}

static uint64_t call_query_rt_values_ex(void)
{
	return (uint64_t)backend->query_rt_values_ex(&a_vctx.context, &a_values_ex);
}

static uint64_t call_get_async_event(void)
{
	return (uint64_t)backend->get_async_event(&a_vctx.context, &a_async_event);
}

static uint64_t call_ack_async_event(void)
{
	backend->ack_async_event(&a_async_event);
	return 0;
}

static uint64_t call_resolve_eth_l2_from_gid(void)
{
	return (uint64_t)backend->resolve_eth_l2_from_gid(&a_vctx.context, &a_ah_attr, a_mac,
							  &a_uint16_t);
}

static uint64_t call_fork_init(void)
{
	return (uint64_t)backend->fork_init();
}

static uint64_t call_is_fork_initialized(void)
{
	return (uint64_t)backend->is_fork_initialized();
}

static uint64_t call_alloc_pd(void)
{
	return (uintptr_t)backend->alloc_pd(&a_vctx.context);
}

static uint64_t call_dealloc_pd(void)
{
	return (uint64_t)backend->dealloc_pd(&a_pd);
}

static uint64_t call_import_pd(void)
{
	return (uintptr_t)backend->import_pd(&a_vctx.context, 0x81000011);
}

static uint64_t call_unimport_pd(void)
{
	backend->unimport_pd(&a_pd);
	return 0;
}

static uint64_t call_alloc_td(void)
{
	return (uintptr_t)backend->alloc_td(&a_vctx.context, &a_td_init_attr);
}

static uint64_t call_dealloc_td(void)
{
	return (uint64_t)backend->dealloc_td(&a_td);
}

static uint64_t call_alloc_parent_domain(void)
{
	return (uintptr_t)backend->alloc_parent_domain(&a_vctx.context, &a_parent_domain_init_attr);
}

static uint64_t call_open_xrcd(void)
{
	return (uintptr_t)backend->open_xrcd(&a_vctx.context, &a_xrcd_init_attr);
}

static uint64_t call_close_xrcd(void)
{
	return (uint64_t)backend->close_xrcd(&a_xrcd);
}

static uint64_t call_reg_mr(void)
{
	return (uintptr_t)backend->reg_mr(&a_pd, a_buffer, 0x200000002, 0x63);
}

static uint64_t call_reg_mr_iova(void)
{
	return (uintptr_t)backend->reg_mr_iova(&a_pd, a_buffer, 0x200000002, 0x1122334455667703,
					       0x64);
}

static uint64_t call_reg_mr_iova2(void)
{
	return (uintptr_t)backend->reg_mr_iova2(&a_pd, a_buffer, 0x200000002, 0x1122334455667703,
						0x81000014);
}

static uint64_t call_reg_dmabuf_mr(void)
{
	return (uintptr_t)backend->reg_dmabuf_mr(&a_pd, 0x1122334455667701, 0x200000002,
						 0x1122334455667703, -68, 0x65);
}

static uint64_t call_rereg_mr(void)
{
	return (uint64_t)backend->rereg_mr(&a_mr, 0x61, &a_pd, a_buffer, 0x200000004, 0x65);
}

static uint64_t call_dereg_mr(void)
{
	return (uint64_t)backend->dereg_mr(&a_mr);
}

static uint64_t call_import_mr(void)
{
	return (uintptr_t)backend->import_mr(&a_pd, 0x81000011);
}

static uint64_t call_unimport_mr(void)
{
	backend->unimport_mr(&a_mr);
	return 0;
}

static uint64_t call_alloc_null_mr(void)
{
	return (uintptr_t)backend->alloc_null_mr(&a_pd);
}

static uint64_t call_reg_dm_mr(void)
{
	return (uintptr_t)backend->reg_dm_mr(&a_pd, &a_dm, 0x1122334455667702, 0x200000003,
					     0x81000014);
}

static uint64_t call_advise_mr(void)
{
	return (uint64_t)backend->advise_mr(&a_pd, 3, 0x81000012, &a_sge, 0x81000014);
}

static uint64_t call_alloc_mw(void)
{
	return (uintptr_t)backend->alloc_mw(&a_pd, 3);
}

static uint64_t call_bind_mw(void)
{
	return (uint64_t)backend->bind_mw(&a_qp_ex.qp_base, &a_mw, &a_mw_bind);
}

static uint64_t call_dealloc_mw(void)
{
	return (uint64_t)backend->dealloc_mw(&a_mw);
}

static uint64_t call_alloc_dm(void)
{
	return (uintptr_t)backend->alloc_dm(&a_vctx.context, &a_alloc_dm_attr);
}

static uint64_t call_free_dm(void)
{
	return (uint64_t)backend->free_dm(&a_dm);
}

static uint64_t call_import_dm(void)
{
	return (uintptr_t)backend->import_dm(&a_vctx.context, 0x81000011);
}

static uint64_t call_unimport_dm(void)
{
	backend->unimport_dm(&a_dm);
	return 0;
}

static uint64_t call_create_comp_channel(void)
{
	return (uintptr_t)backend->create_comp_channel(&a_vctx.context);
}

static uint64_t call_destroy_comp_channel(void)
{
	return (uint64_t)backend->destroy_comp_channel(&a_comp_channel);
}

static uint64_t call_create_cq(void)
{
	return (uintptr_t)backend->create_cq(&a_vctx.context, 0x61, a_buffer, &a_comp_channel, -68);
}

static uint64_t call_create_cq_ex(void)
{
	return (uintptr_t)backend->create_cq_ex(&a_vctx.context, &a_cq_init_attr_ex);
}

static uint64_t call_resize_cq(void)
{
	return (uint64_t)backend->resize_cq(&a_cq, 0x61);
}

static uint64_t call_modify_cq(void)
{
	return (uint64_t)backend->modify_cq(&a_cq, &a_modify_cq_attr);
}

static uint64_t call_destroy_cq(void)
{
	return (uint64_t)backend->destroy_cq(&a_cq);
}

static uint64_t call_get_cq_event(void)
{
	return (uint64_t)backend->get_cq_event(&a_comp_channel, &a_cq_p, &a_void_p);
}

static uint64_t call_ack_cq_events(void)
{
	backend->ack_cq_events(&a_cq, 0x81000011);
	return 0;
}

static uint64_t call_poll_cq(void)
{
	return (uint64_t)backend->poll_cq(&a_cq, 0x61, &a_wc);
}

static uint64_t call_req_notify_cq(void)
{
	return (uint64_t)backend->req_notify_cq(&a_cq, 0x61);
}

static uint64_t call_create_srq(void)
{
	return (uintptr_t)backend->create_srq(&a_pd, &a_srq_init_attr);
}

static uint64_t call_create_srq_ex(void)
{
	return (uintptr_t)backend->create_srq_ex(&a_vctx.context, &a_srq_init_attr_ex);
}

static uint64_t call_modify_srq(void)
{
	return (uint64_t)backend->modify_srq(&a_srq, &a_srq_attr, 0x62);
}

static uint64_t call_query_srq(void)
{
	return (uint64_t)backend->query_srq(&a_srq, &a_srq_attr);
}

static uint64_t call_get_srq_num(void)
{
	return (uint64_t)backend->get_srq_num(&a_srq, &a_uint32_t);
}

static uint64_t call_destroy_srq(void)
{
	return (uint64_t)backend->destroy_srq(&a_srq);
}

static uint64_t call_post_srq_recv(void)
{
	return (uint64_t)backend->post_srq_recv(&a_srq, &a_recv_wr, &a_recv_wr_p);
}

static uint64_t call_post_srq_ops(void)
{
	return (uint64_t)backend->post_srq_ops(&a_srq, &a_ops_wr, &a_ops_wr_p);
}

static uint64_t call_create_qp(void)
{
	return (uintptr_t)backend->create_qp(&a_pd, &a_qp_init_attr);
}

static uint64_t call_create_qp_ex(void)
{
	return (uintptr_t)backend->create_qp_ex(&a_vctx.context, &a_qp_init_attr_ex);
}

static uint64_t call_qp_to_qp_ex(void)
{
	return (uintptr_t)backend->qp_to_qp_ex(&a_qp_ex.qp_base);
}

static uint64_t call_open_qp(void)
{
	return (uintptr_t)backend->open_qp(&a_vctx.context, &a_qp_open_attr);
}

static uint64_t call_modify_qp(void)
{
	return (uint64_t)backend->modify_qp(&a_qp_ex.qp_base, &a_qp_attr, 0x62);
}

static uint64_t call_query_qp(void)
{
	return (uint64_t)backend->query_qp(&a_qp_ex.qp_base, &a_qp_attr, 0x62, &a_qp_init_attr);
}

static uint64_t call_query_qp_data_in_order(void)
{
	return (uint64_t)backend->query_qp_data_in_order(&a_qp_ex.qp_base, 3, 0x81000012);
}

static uint64_t call_modify_qp_rate_limit(void)
{
	return (uint64_t)backend->modify_qp_rate_limit(&a_qp_ex.qp_base, &a_qp_rate_limit_attr);
}

static uint64_t call_set_ece(void)
{
	return (uint64_t)backend->set_ece(&a_qp_ex.qp_base, &a_ece);
}

static uint64_t call_query_ece(void)
{
	return (uint64_t)backend->query_ece(&a_qp_ex.qp_base, &a_ece);
}

static uint64_t call_destroy_qp(void)
{
	return (uint64_t)backend->destroy_qp(&a_qp_ex.qp_base);
}

static uint64_t call_post_send(void)
{
	return (uint64_t)backend->post_send(&a_qp_ex.qp_base, &a_send_wr, &a_send_wr_p);
}

static uint64_t call_post_recv(void)
{
	return (uint64_t)backend->post_recv(&a_qp_ex.qp_base, &a_recv_wr, &a_recv_wr_p);
}

static uint64_t call_attach_mcast(void)
{
	return (uint64_t)backend->attach_mcast(&a_qp_ex.qp_base, &a_gid, 0xfff2);
}

static uint64_t call_detach_mcast(void)
{
	return (uint64_t)backend->detach_mcast(&a_qp_ex.qp_base, &a_gid, 0xfff2);
}

static uint64_t call_create_ah(void)
{
	return (uintptr_t)backend->create_ah(&a_pd, &a_ah_attr);
}

static uint64_t call_init_ah_from_wc(void)
{
	return (uint64_t)backend->init_ah_from_wc(&a_vctx.context, 0xf1, &a_wc, &a_grh, &a_ah_attr);
}

static uint64_t call_create_ah_from_wc(void)
{
	return (uintptr_t)backend->create_ah_from_wc(&a_pd, &a_wc, &a_grh, 0xf3);
}

static uint64_t call_destroy_ah(void)
{
	return (uint64_t)backend->destroy_ah(&a_ah);
}

static uint64_t call_create_wq(void)
{
	return (uintptr_t)backend->create_wq(&a_vctx.context, &a_wq_init_attr);
}

static uint64_t call_modify_wq(void)
{
	return (uint64_t)backend->modify_wq(&a_wq, &a_wq_attr);
}

static uint64_t call_destroy_wq(void)
{
	return (uint64_t)backend->destroy_wq(&a_wq);
}

static uint64_t call_create_rwq_ind_table(void)
{
	return (uintptr_t)backend->create_rwq_ind_table(&a_vctx.context,
							&a_rwq_ind_table_init_attr);
}

static uint64_t call_destroy_rwq_ind_table(void)
{
	return (uint64_t)backend->destroy_rwq_ind_table(&a_rwq_ind_table);
}

static uint64_t call_create_flow(void)
{
	return (uintptr_t)backend->create_flow(&a_qp_ex.qp_base, &a_flow_attr);
}

static uint64_t call_destroy_flow(void)
{
	return (uint64_t)backend->destroy_flow(&a_flow);
}

static uint64_t call_create_flow_action_esp(void)
{
	return (uintptr_t)backend->create_flow_action_esp(&a_vctx.context, &a_flow_action_esp_attr);
}

static uint64_t call_modify_flow_action_esp(void)
{
	return (uint64_t)backend->modify_flow_action_esp(&a_flow_action, &a_flow_action_esp_attr);
}

static uint64_t call_destroy_flow_action(void)
{
	return (uint64_t)backend->destroy_flow_action(&a_flow_action);
}

static uint64_t call_create_counters(void)
{
	return (uintptr_t)backend->create_counters(&a_vctx.context, &a_counters_init_attr);
}

static uint64_t call_destroy_counters(void)
{
	return (uint64_t)backend->destroy_counters(&a_counters);
}

static uint64_t call_attach_counters_point_flow(void)
{
	return (uint64_t)backend->attach_counters_point_flow(&a_counters, &a_counter_attach_attr,
							     &a_flow);
}

static uint64_t call_read_counters(void)
{
	return (uint64_t)backend->read_counters(&a_counters, &a_uint64_t, 0x81000012, 0x81000013);
}

/* clang-format off */
const struct verb_case cases[] = {
	{"get_device_list", "ibv_get_device_list", POINTER, 0,
	 call_get_device_list, 1, {WORD(&a_int)}},
	{"free_device_list", "ibv_free_device_list", NOTHING, 0,
	 call_free_device_list, 1, {WORD(&a_device_p)}},
	{"get_device_name", "ibv_get_device_name", POINTER, 0,
	 call_get_device_name, 1, {WORD(&a_device)}},
	{"get_device_index", "ibv_get_device_index", MINUS_ONE, 0,
	 call_get_device_index, 1, {WORD(&a_device)}},
	{"get_device_guid", "ibv_get_device_guid", NUMBER, 0,
	 call_get_device_guid, 1, {WORD(&a_device)}},
	{"open_device", "ibv_open_device", POINTER, 0,
	 call_open_device, 1, {WORD(&a_device)}},
	{"close_device", "ibv_close_device", MINUS_ONE, 0,
	 call_close_device, 1, {WORD(&a_vctx.context)}},
	{"import_device", "ibv_import_device", POINTER, 0,
	 call_import_device, 1, {(uint64_t)-64}},
	{"query_device", "ibv_query_device", ERRNO, 0,
	 call_query_device, 2, {WORD(&a_vctx.context), WORD(&a_device_attr)}},
	{"query_device_ex", "verbs_context.query_device_ex", ERRNO, FALLS_BACK,
	 call_query_device_ex, 4, {WORD(&a_vctx.context), WORD(&a_query_device_ex_input),
	 WORD(&a_device_attr_ex), 0x200000003}},
	{"query_port", "verbs_context.query_port", ERRNO, FALLS_BACK,
	 call_query_port, 4, {WORD(&a_vctx.context), 0xf1, WORD(&a_port_attr), 0x200000003}},
	{"query_gid", "ibv_query_gid", MINUS_ONE, 0,
	 call_query_gid, 4, {WORD(&a_vctx.context), 0xf1, (uint64_t)-66, WORD(&a_gid)}},
	{"query_gid_ex", "_ibv_query_gid_ex", ERRNO, 0,
	 call_query_gid_ex, 6, {WORD(&a_vctx.context), 0x81000011, 0x81000012,
	 WORD(&a_gid_entry), 0x81000014, 0x200000005}},
	{"query_gid_table", "_ibv_query_gid_table", NEGATED, 0,
	 call_query_gid_table, 5, {WORD(&a_vctx.context), WORD(&a_gid_entry), 0x200000002,
	 0x81000013, 0x200000004}},
	{"query_pkey", "ibv_query_pkey", MINUS_ONE, 0,
	 call_query_pkey, 4, {WORD(&a_vctx.context), 0xf1, (uint64_t)-66, WORD(&a___be16)}},
	{"get_pkey_index", "ibv_get_pkey_index", MINUS_ONE, 0,
	 call_get_pkey_index, 3, {WORD(&a_vctx.context), 0xf1, 0xfff2}},
	{"query_rt_values_ex", "verbs_context.query_rt_values", ERRNO, 0,
	 call_query_rt_values_ex, 2, {WORD(&a_vctx.context), WORD(&a_values_ex)}},
	{"get_async_event", "ibv_get_async_event", MINUS_ONE, 0,
	 call_get_async_event, 2, {WORD(&a_vctx.context), WORD(&a_async_event)}},
	{"ack_async_event", "ibv_ack_async_event", NOTHING, 0,
	 call_ack_async_event, 1, {WORD(&a_async_event)}},
	{"resolve_eth_l2_from_gid", "ibv_resolve_eth_l2_from_gid", MINUS_ONE, 0,
	 call_resolve_eth_l2_from_gid, 4, {WORD(&a_vctx.context), WORD(&a_ah_attr), WORD(a_mac),
	 WORD(&a_uint16_t)}},
	{"fork_init", "ibv_fork_init", ERRNO, 0,
	 call_fork_init, 0, {}},
	{"is_fork_initialized", "ibv_is_fork_initialized", NUMBER, 0,
	 call_is_fork_initialized, 0, {}},
	{"alloc_pd", "ibv_alloc_pd", POINTER, 0,
	 call_alloc_pd, 1, {WORD(&a_vctx.context)}},
	{"dealloc_pd", "ibv_dealloc_pd", ERRNO, 0,
	 call_dealloc_pd, 1, {WORD(&a_pd)}},
	{"import_pd", "ibv_import_pd", POINTER, 0,
	 call_import_pd, 2, {WORD(&a_vctx.context), 0x81000011}},
	{"unimport_pd", "ibv_unimport_pd", NOTHING, 0,
	 call_unimport_pd, 1, {WORD(&a_pd)}},
	{"alloc_td", "verbs_context.alloc_td", POINTER, 0,
	 call_alloc_td, 2, {WORD(&a_vctx.context), WORD(&a_td_init_attr)}},
	{"dealloc_td", "verbs_context.dealloc_td", ERRNO, 0,
	 call_dealloc_td, 1, {WORD(&a_td)}},
	{"alloc_parent_domain", "verbs_context.alloc_parent_domain", POINTER, 0,
	 call_alloc_parent_domain, 2, {WORD(&a_vctx.context), WORD(&a_parent_domain_init_attr)}},
	{"open_xrcd", "verbs_context.open_xrcd", POINTER, 0,
	 call_open_xrcd, 2, {WORD(&a_vctx.context), WORD(&a_xrcd_init_attr)}},
	{"close_xrcd", "verbs_context.close_xrcd", ERRNO, 0,
	 call_close_xrcd, 1, {WORD(&a_xrcd)}},
	{"reg_mr", "ibv_reg_mr", POINTER, 0,
	 call_reg_mr, 4, {WORD(&a_pd), WORD(a_buffer), 0x200000002, 0x63}},
	{"reg_mr_iova", "ibv_reg_mr_iova", POINTER, 0,
	 call_reg_mr_iova, 5, {WORD(&a_pd), WORD(a_buffer), 0x200000002, 0x1122334455667703,
	 0x64}},
	{"reg_mr_iova2", "ibv_reg_mr_iova2", POINTER, 0,
	 call_reg_mr_iova2, 5, {WORD(&a_pd), WORD(a_buffer), 0x200000002, 0x1122334455667703,
	 0x81000014}},
	{"reg_dmabuf_mr", "ibv_reg_dmabuf_mr", POINTER, 0,
	 call_reg_dmabuf_mr, 6, {WORD(&a_pd), 0x1122334455667701, 0x200000002,
	 0x1122334455667703, (uint64_t)-68, 0x65}},
	{"rereg_mr", "ibv_rereg_mr", REREG, 0,
	 call_rereg_mr, 6, {WORD(&a_mr), 0x61, WORD(&a_pd), WORD(a_buffer), 0x200000004, 0x65}},
	{"dereg_mr", "ibv_dereg_mr", ERRNO, 0,
	 call_dereg_mr, 1, {WORD(&a_mr)}},
	{"import_mr", "ibv_import_mr", POINTER, 0,
	 call_import_mr, 2, {WORD(&a_pd), 0x81000011}},
	{"unimport_mr", "ibv_unimport_mr", NOTHING, 0,
	 call_unimport_mr, 1, {WORD(&a_mr)}},
	{"alloc_null_mr", "verbs_context.alloc_null_mr", POINTER, 0,
	 call_alloc_null_mr, 1, {WORD(&a_pd)}},
	{"reg_dm_mr", "verbs_context.reg_dm_mr", POINTER, 0,
	 call_reg_dm_mr, 5, {WORD(&a_pd), WORD(&a_dm), 0x1122334455667702, 0x200000003,
	 0x81000014}},
	{"advise_mr", "verbs_context.advise_mr", ERRNO, 0,
	 call_advise_mr, 5, {WORD(&a_pd), 3, 0x81000012, WORD(&a_sge), 0x81000014}},
	{"alloc_mw", "ops.alloc_mw", POINTER, 0,
	 call_alloc_mw, 2, {WORD(&a_pd), 3}},
	{"bind_mw", "ops.bind_mw", ERRNO, 0,
	 call_bind_mw, 3, {WORD(&a_qp_ex.qp_base), WORD(&a_mw), WORD(&a_mw_bind)}},
	{"dealloc_mw", "ops.dealloc_mw", ERRNO, 0,
	 call_dealloc_mw, 1, {WORD(&a_mw)}},
	{"alloc_dm", "verbs_context.alloc_dm", POINTER, 0,
	 call_alloc_dm, 2, {WORD(&a_vctx.context), WORD(&a_alloc_dm_attr)}},
	{"free_dm", "verbs_context.free_dm", ERRNO, 0,
	 call_free_dm, 1, {WORD(&a_dm)}},
	{"import_dm", "ibv_import_dm", POINTER, 0,
	 call_import_dm, 2, {WORD(&a_vctx.context), 0x81000011}},
	{"unimport_dm", "ibv_unimport_dm", NOTHING, 0,
	 call_unimport_dm, 1, {WORD(&a_dm)}},
	{"create_comp_channel", "ibv_create_comp_channel", POINTER, 0,
	 call_create_comp_channel, 1, {WORD(&a_vctx.context)}},
	{"destroy_comp_channel", "ibv_destroy_comp_channel", ERRNO, 0,
	 call_destroy_comp_channel, 1, {WORD(&a_comp_channel)}},
	{"create_cq", "ibv_create_cq", POINTER, 0,
	 call_create_cq, 5, {WORD(&a_vctx.context), 0x61, WORD(a_buffer), WORD(&a_comp_channel),
	 (uint64_t)-68}},
	{"create_cq_ex", "verbs_context.create_cq_ex", POINTER, 0,
	 call_create_cq_ex, 2, {WORD(&a_vctx.context), WORD(&a_cq_init_attr_ex)}},
	{"resize_cq", "ibv_resize_cq", ERRNO, 0,
	 call_resize_cq, 2, {WORD(&a_cq), 0x61}},
	{"modify_cq", "verbs_context.modify_cq", ERRNO, 0,
	 call_modify_cq, 2, {WORD(&a_cq), WORD(&a_modify_cq_attr)}},
	{"destroy_cq", "ibv_destroy_cq", ERRNO, 0,
	 call_destroy_cq, 1, {WORD(&a_cq)}},
	{"get_cq_event", "ibv_get_cq_event", MINUS_ONE, 0,
	 call_get_cq_event, 3, {WORD(&a_comp_channel), WORD(&a_cq_p), WORD(&a_void_p)}},
	{"ack_cq_events", "ibv_ack_cq_events", NOTHING, 0,
	 call_ack_cq_events, 2, {WORD(&a_cq), 0x81000011}},
	{"poll_cq", "ops.poll_cq", MINUS_ONE, 0,
	 call_poll_cq, 3, {WORD(&a_cq), 0x61, WORD(&a_wc)}},
	{"req_notify_cq", "ops.req_notify_cq", ERRNO, 0,
	 call_req_notify_cq, 2, {WORD(&a_cq), 0x61}},
	{"create_srq", "ibv_create_srq", POINTER, 0,
	 call_create_srq, 2, {WORD(&a_pd), WORD(&a_srq_init_attr)}},
	{"create_srq_ex", "verbs_context.create_srq_ex", POINTER, 0,
	 call_create_srq_ex, 2, {WORD(&a_vctx.context), WORD(&a_srq_init_attr_ex)}},
	{"modify_srq", "ibv_modify_srq", ERRNO, 0,
	 call_modify_srq, 3, {WORD(&a_srq), WORD(&a_srq_attr), 0x62}},
	{"query_srq", "ibv_query_srq", ERRNO, 0,
	 call_query_srq, 2, {WORD(&a_srq), WORD(&a_srq_attr)}},
	{"get_srq_num", "verbs_context.get_srq_num", ERRNO, 0,
	 call_get_srq_num, 2, {WORD(&a_srq), WORD(&a_uint32_t)}},
	{"destroy_srq", "ibv_destroy_srq", ERRNO, 0,
	 call_destroy_srq, 1, {WORD(&a_srq)}},
	{"post_srq_recv", "ops.post_srq_recv", ERRNO, 0,
	 call_post_srq_recv, 3, {WORD(&a_srq), WORD(&a_recv_wr), WORD(&a_recv_wr_p)}},
	{"post_srq_ops", "verbs_context.post_srq_ops", ERRNO, 0,
	 call_post_srq_ops, 3, {WORD(&a_srq), WORD(&a_ops_wr), WORD(&a_ops_wr_p)}},
	{"create_qp", "ibv_create_qp", POINTER, 0,
	 call_create_qp, 2, {WORD(&a_pd), WORD(&a_qp_init_attr)}},
	{"create_qp_ex", "verbs_context.create_qp_ex", POINTER, 0,
	 call_create_qp_ex, 2, {WORD(&a_vctx.context), WORD(&a_qp_init_attr_ex)}},
	{"qp_to_qp_ex", "ibv_qp_to_qp_ex", POINTER, 0,
	 call_qp_to_qp_ex, 1, {WORD(&a_qp_ex.qp_base)}},
	{"open_qp", "verbs_context.open_qp", POINTER, 0,
	 call_open_qp, 2, {WORD(&a_vctx.context), WORD(&a_qp_open_attr)}},
	{"modify_qp", "ibv_modify_qp", ERRNO, 0,
	 call_modify_qp, 3, {WORD(&a_qp_ex.qp_base), WORD(&a_qp_attr), 0x62}},
	{"query_qp", "ibv_query_qp", ERRNO, 0,
	 call_query_qp, 4, {WORD(&a_qp_ex.qp_base), WORD(&a_qp_attr), 0x62, WORD(&a_qp_init_attr)}},
	{"query_qp_data_in_order", "ibv_query_qp_data_in_order", NUMBER, 0,
	 call_query_qp_data_in_order, 3, {WORD(&a_qp_ex.qp_base), 3, 0x81000012}},
	{"modify_qp_rate_limit", "verbs_context.modify_qp_rate_limit", ERRNO, 0,
	 call_modify_qp_rate_limit, 2, {WORD(&a_qp_ex.qp_base), WORD(&a_qp_rate_limit_attr)}},
	{"set_ece", "ibv_set_ece", ERRNO, 0,
	 call_set_ece, 2, {WORD(&a_qp_ex.qp_base), WORD(&a_ece)}},
	{"query_ece", "ibv_query_ece", ERRNO, 0,
	 call_query_ece, 2, {WORD(&a_qp_ex.qp_base), WORD(&a_ece)}},
	{"destroy_qp", "ibv_destroy_qp", ERRNO, 0,
	 call_destroy_qp, 1, {WORD(&a_qp_ex.qp_base)}},
	{"post_send", "ops.post_send", ERRNO, 0,
	 call_post_send, 3, {WORD(&a_qp_ex.qp_base), WORD(&a_send_wr), WORD(&a_send_wr_p)}},
	{"post_recv", "ops.post_recv", ERRNO, 0,
	 call_post_recv, 3, {WORD(&a_qp_ex.qp_base), WORD(&a_recv_wr), WORD(&a_recv_wr_p)}},
	{"attach_mcast", "ibv_attach_mcast", ERRNO, 0,
	 call_attach_mcast, 3, {WORD(&a_qp_ex.qp_base), WORD(&a_gid), 0xfff2}},
	{"detach_mcast", "ibv_detach_mcast", ERRNO, 0,
	 call_detach_mcast, 3, {WORD(&a_qp_ex.qp_base), WORD(&a_gid), 0xfff2}},
	{"create_ah", "ibv_create_ah", POINTER, 0,
	 call_create_ah, 2, {WORD(&a_pd), WORD(&a_ah_attr)}},
	{"init_ah_from_wc", "ibv_init_ah_from_wc", MINUS_ONE, 0,
	 call_init_ah_from_wc, 5, {WORD(&a_vctx.context), 0xf1, WORD(&a_wc), WORD(&a_grh),
	 WORD(&a_ah_attr)}},
	{"create_ah_from_wc", "ibv_create_ah_from_wc", POINTER, 0,
	 call_create_ah_from_wc, 4, {WORD(&a_pd), WORD(&a_wc), WORD(&a_grh), 0xf3}},
	{"destroy_ah", "ibv_destroy_ah", ERRNO, 0,
	 call_destroy_ah, 1, {WORD(&a_ah)}},
	{"create_wq", "verbs_context.create_wq", POINTER, 0,
	 call_create_wq, 2, {WORD(&a_vctx.context), WORD(&a_wq_init_attr)}},
	{"modify_wq", "verbs_context.modify_wq", ERRNO, 0,
	 call_modify_wq, 2, {WORD(&a_wq), WORD(&a_wq_attr)}},
	{"destroy_wq", "verbs_context.destroy_wq", ERRNO, 0,
	 call_destroy_wq, 1, {WORD(&a_wq)}},
	{"create_rwq_ind_table", "verbs_context.create_rwq_ind_table", POINTER, 0,
	 call_create_rwq_ind_table, 2, {WORD(&a_vctx.context),
	 WORD(&a_rwq_ind_table_init_attr)}},
	{"destroy_rwq_ind_table", "verbs_context.destroy_rwq_ind_table", ERRNO, 0,
	 call_destroy_rwq_ind_table, 1, {WORD(&a_rwq_ind_table)}},
	{"create_flow", "verbs_context.ibv_create_flow", POINTER, 0,
	 call_create_flow, 2, {WORD(&a_qp_ex.qp_base), WORD(&a_flow_attr)}},
	{"destroy_flow", "verbs_context.ibv_destroy_flow", ERRNO, 0,
	 call_destroy_flow, 1, {WORD(&a_flow)}},
	{"create_flow_action_esp", "verbs_context.create_flow_action_esp", POINTER, 0,
	 call_create_flow_action_esp, 2, {WORD(&a_vctx.context), WORD(&a_flow_action_esp_attr)}},
	{"modify_flow_action_esp", "verbs_context.modify_flow_action_esp", ERRNO, 0,
	 call_modify_flow_action_esp, 2, {WORD(&a_flow_action), WORD(&a_flow_action_esp_attr)}},
	{"destroy_flow_action", "verbs_context.destroy_flow_action", ERRNO, 0,
	 call_destroy_flow_action, 1, {WORD(&a_flow_action)}},
	{"create_counters", "verbs_context.create_counters", POINTER, 0,
	 call_create_counters, 2, {WORD(&a_vctx.context), WORD(&a_counters_init_attr)}},
	{"destroy_counters", "verbs_context.destroy_counters", ERRNO, 0,
	 call_destroy_counters, 1, {WORD(&a_counters)}},
	{"attach_counters_point_flow", "verbs_context.attach_counters_point_flow", ERRNO, 0,
	 call_attach_counters_point_flow, 3, {WORD(&a_counters), WORD(&a_counter_attach_attr),
	 WORD(&a_flow)}},
	{"read_counters", "verbs_context.read_counters", ERRNO, 0,
	 call_read_counters, 4, {WORD(&a_counters), WORD(&a_uint64_t), 0x81000012, 0x81000013}},
};
/* clang-format on */

const size_t case_count = sizeof(cases) / sizeof(cases[0]);
