/* SPDX-License-Identifier: MIT */
#include "backends/ibverbs/library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_FILE "libibverbs.so.1"

/* Exported by Verbena's own libibverbs.so.1, and by nothing else. */
#define DROPIN_MARK "verbena_dropin"

struct symbol {
	const char *name;
	const char *version; /* the default one of libibverbs 44: nm -D libibverbs.so.1 */
	size_t place;
};

static const struct symbol symbols[] = {
	{"ibv_get_device_list", "IBVERBS_1.1", offsetof(struct library, get_device_list)},
	{"ibv_free_device_list", "IBVERBS_1.1", offsetof(struct library, free_device_list)},
	{"ibv_get_device_name", "IBVERBS_1.1", offsetof(struct library, get_device_name)},
	{"ibv_get_device_index", "IBVERBS_1.9", offsetof(struct library, get_device_index)},
	{"ibv_get_device_guid", "IBVERBS_1.1", offsetof(struct library, get_device_guid)},
	{"ibv_open_device", "IBVERBS_1.1", offsetof(struct library, open_device)},
	{"ibv_close_device", "IBVERBS_1.1", offsetof(struct library, close_device)},
	{"ibv_import_device", "IBVERBS_1.10", offsetof(struct library, import_device)},
	{"ibv_query_device", "IBVERBS_1.1", offsetof(struct library, query_device)},
	{"ibv_query_port", "IBVERBS_1.1", offsetof(struct library, query_port)},
	{"ibv_query_gid", "IBVERBS_1.1", offsetof(struct library, query_gid)},
	{"_ibv_query_gid_ex", "IBVERBS_1.11", offsetof(struct library, query_gid_ex)},
	{"_ibv_query_gid_table", "IBVERBS_1.11", offsetof(struct library, query_gid_table)},
	{"ibv_query_pkey", "IBVERBS_1.1", offsetof(struct library, query_pkey)},
	{"ibv_get_pkey_index", "IBVERBS_1.5", offsetof(struct library, get_pkey_index)},
	{"ibv_get_async_event", "IBVERBS_1.1", offsetof(struct library, get_async_event)},
	{"ibv_ack_async_event", "IBVERBS_1.1", offsetof(struct library, ack_async_event)},
	{"ibv_resolve_eth_l2_from_gid", "IBVERBS_1.1",
	 offsetof(struct library, resolve_eth_l2_from_gid)},
	{"ibv_fork_init", "IBVERBS_1.1", offsetof(struct library, fork_init)},
	{"ibv_is_fork_initialized", "IBVERBS_1.13", offsetof(struct library, is_fork_initialized)},
	{"ibv_alloc_pd", "IBVERBS_1.1", offsetof(struct library, alloc_pd)},
	{"ibv_dealloc_pd", "IBVERBS_1.1", offsetof(struct library, dealloc_pd)},
	{"ibv_import_pd", "IBVERBS_1.10", offsetof(struct library, import_pd)},
	{"ibv_unimport_pd", "IBVERBS_1.10", offsetof(struct library, unimport_pd)},
	{"ibv_reg_mr", "IBVERBS_1.1", offsetof(struct library, reg_mr)},
	{"ibv_reg_mr_iova", "IBVERBS_1.7", offsetof(struct library, reg_mr_iova)},
	{"ibv_reg_mr_iova2", "IBVERBS_1.8", offsetof(struct library, reg_mr_iova2)},
	{"ibv_reg_dmabuf_mr", "IBVERBS_1.12", offsetof(struct library, reg_dmabuf_mr)},
	{"ibv_rereg_mr", "IBVERBS_1.1", offsetof(struct library, rereg_mr)},
	{"ibv_dereg_mr", "IBVERBS_1.1", offsetof(struct library, dereg_mr)},
	{"ibv_import_mr", "IBVERBS_1.10", offsetof(struct library, import_mr)},
	{"ibv_unimport_mr", "IBVERBS_1.10", offsetof(struct library, unimport_mr)},
	{"ibv_import_dm", "IBVERBS_1.13", offsetof(struct library, import_dm)},
	{"ibv_unimport_dm", "IBVERBS_1.13", offsetof(struct library, unimport_dm)},
	{"ibv_create_comp_channel", "IBVERBS_1.0", offsetof(struct library, create_comp_channel)},
	{"ibv_destroy_comp_channel", "IBVERBS_1.0", offsetof(struct library, destroy_comp_channel)},
	{"ibv_create_cq", "IBVERBS_1.1", offsetof(struct library, create_cq)},
	{"ibv_resize_cq", "IBVERBS_1.1", offsetof(struct library, resize_cq)},
	{"ibv_destroy_cq", "IBVERBS_1.1", offsetof(struct library, destroy_cq)},
	{"ibv_get_cq_event", "IBVERBS_1.1", offsetof(struct library, get_cq_event)},
	{"ibv_ack_cq_events", "IBVERBS_1.1", offsetof(struct library, ack_cq_events)},
	{"ibv_create_srq", "IBVERBS_1.1", offsetof(struct library, create_srq)},
	{"ibv_modify_srq", "IBVERBS_1.1", offsetof(struct library, modify_srq)},
	{"ibv_query_srq", "IBVERBS_1.1", offsetof(struct library, query_srq)},
	{"ibv_destroy_srq", "IBVERBS_1.1", offsetof(struct library, destroy_srq)},
	{"ibv_create_qp", "IBVERBS_1.1", offsetof(struct library, create_qp)},
	{"ibv_qp_to_qp_ex", "IBVERBS_1.6", offsetof(struct library, qp_to_qp_ex)},
	{"ibv_modify_qp", "IBVERBS_1.1", offsetof(struct library, modify_qp)},
	{"ibv_query_qp", "IBVERBS_1.1", offsetof(struct library, query_qp)},
	{"ibv_query_qp_data_in_order", "IBVERBS_1.14",
	 offsetof(struct library, query_qp_data_in_order)},
	{"ibv_set_ece", "IBVERBS_1.10", offsetof(struct library, set_ece)},
	{"ibv_query_ece", "IBVERBS_1.10", offsetof(struct library, query_ece)},
	{"ibv_destroy_qp", "IBVERBS_1.1", offsetof(struct library, destroy_qp)},
	{"ibv_attach_mcast", "IBVERBS_1.1", offsetof(struct library, attach_mcast)},
	{"ibv_detach_mcast", "IBVERBS_1.1", offsetof(struct library, detach_mcast)},
	{"ibv_create_ah", "IBVERBS_1.1", offsetof(struct library, create_ah)},
	{"ibv_init_ah_from_wc", "IBVERBS_1.1", offsetof(struct library, init_ah_from_wc)},
	{"ibv_create_ah_from_wc", "IBVERBS_1.1", offsetof(struct library, create_ah_from_wc)},
	{"ibv_destroy_ah", "IBVERBS_1.1", offsetof(struct library, destroy_ah)},
};

static struct library loaded;
static bool is_loaded;
static char error[512];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void find_symbol(void *handle, const struct symbol *symbol)
{
	void *found = dlvsym(handle, symbol->name, symbol->version);

	/* A later release may have given the name a new version; the default one is then right. */
	if (!found)
		found = dlsym(handle, symbol->name);
	memcpy((char *)&loaded + symbol->place, &found, sizeof(found));
}

static void say_missing(const char *file, const char *cause)
{
	snprintf(error, sizeof(error),
		 "%s cannot be loaded (%s): install libibverbs1 and ibverbs-providers (Debian, "
		 "Ubuntu) or rdma-core (Fedora, SUSE), or name the file in VERBENA_LIBIBVERBS",
		 file, cause);
}

static void load(void)
{
	const char *file = getenv("VERBENA_LIBIBVERBS");
	void *handle;

	if (!file || !*file)
		file = DEFAULT_FILE;

	handle = dlopen(file, RTLD_NOW | RTLD_LOCAL);
	if (!handle) {
		const char *cause = dlerror();

		say_missing(file, cause ? cause : "no reason given");
		return;
	}
	if (dlsym(handle, DROPIN_MARK)) {
		snprintf(error, sizeof(error),
			 "%s is Verbena's own drop-in, beside which the real libibverbs cannot be "
			 "loaded: run without it to reach real devices",
			 file);
		dlclose(handle);
		return;
	}

	for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++)
		find_symbol(handle, &symbols[i]);
	if (!loaded.get_device_list) {
		memset(&loaded, 0, sizeof(loaded));
		say_missing(file, "it has no ibv_get_device_list");
		dlclose(handle);
		return;
	}
	is_loaded = true;
}

const struct library *library(void)
{
	pthread_once(&once, load);
	return &loaded;
}

bool library_loaded(void)
{
	library();
	return is_loaded;
}

const char *library_error(void)
{
	library();
	return error;
}
