/* SPDX-License-Identifier: MIT */
#include "src/explain/symbol.h"

#include "src/base/count.h"

#include <dlfcn.h>
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIBRARY	   "libdw.so.1"
#define NAME_BYTES 160

/* The functions of libdw: the library is opened at run time, so that Verbena does not need it. */
static struct {
	typeof(dwfl_begin) *begin;
	typeof(dwfl_report_begin_add) *report_begin_add;
	typeof(dwfl_report_elf) *report_elf;
	typeof(dwfl_report_end) *report_end;
	typeof(dwfl_build_id_find_debuginfo) *find_debuginfo;
	typeof(dwfl_addrmodule) *module_at;
	typeof(dwfl_module_addrname) *name_at;
	typeof(dwfl_module_addrdie) *unit_at;
	typeof(dwfl_module_nextcu) *next_unit;
	typeof(dwarf_getsrc_die) *line_at;
	typeof(dwarf_linesrc) *line_file;
	typeof(dwarf_lineno) *line_number;
	typeof(dwarf_child) *child;
	typeof(dwarf_siblingof) *sibling;
	typeof(dwarf_haspc) *has_address;
	typeof(dwarf_getscopes_die) *scopes_of;
	typeof(dwarf_tag) *tag;
	typeof(dwarf_diename) *name;
	typeof(dwarf_attr) *attribute;
	typeof(dwarf_formref_die) *reference;
	typeof(dwarf_formudata) *number;
	typeof(dwarf_formstring) *string;
	typeof(dwarf_getsrcfiles) *files_of;
	typeof(dwarf_filesrc) *file_at;
} dw;

static const struct {
	const char *name;
	size_t offset;
} functions[] = {
	{"dwfl_begin", offsetof(typeof(dw), begin)},
	{"dwfl_report_begin_add", offsetof(typeof(dw), report_begin_add)},
	{"dwfl_report_elf", offsetof(typeof(dw), report_elf)},
	{"dwfl_report_end", offsetof(typeof(dw), report_end)},
	{"dwfl_build_id_find_debuginfo", offsetof(typeof(dw), find_debuginfo)},
	{"dwfl_addrmodule", offsetof(typeof(dw), module_at)},
	{"dwfl_module_addrname", offsetof(typeof(dw), name_at)},
	{"dwfl_module_addrdie", offsetof(typeof(dw), unit_at)},
	{"dwfl_module_nextcu", offsetof(typeof(dw), next_unit)},
	{"dwarf_getsrc_die", offsetof(typeof(dw), line_at)},
	{"dwarf_linesrc", offsetof(typeof(dw), line_file)},
	{"dwarf_lineno", offsetof(typeof(dw), line_number)},
	{"dwarf_child", offsetof(typeof(dw), child)},
	{"dwarf_siblingof", offsetof(typeof(dw), sibling)},
	{"dwarf_haspc", offsetof(typeof(dw), has_address)},
	{"dwarf_getscopes_die", offsetof(typeof(dw), scopes_of)},
	{"dwarf_tag", offsetof(typeof(dw), tag)},
	{"dwarf_diename", offsetof(typeof(dw), name)},
	{"dwarf_attr", offsetof(typeof(dw), attribute)},
	{"dwarf_formref_die", offsetof(typeof(dw), reference)},
	{"dwarf_formudata", offsetof(typeof(dw), number)},
	{"dwarf_formstring", offsetof(typeof(dw), string)},
	{"dwarf_getsrcfiles", offsetof(typeof(dw), files_of)},
	{"dwarf_filesrc", offsetof(typeof(dw), file_at)},
};

static Dwfl *program; /* NULL without libdw */

/* __cxa_demangle() of the C++ runtime, if the program has it. */
static char *(*demangle)(const char *mangled, char *text, size_t *bytes, int *status);

bool symbol_start(void)
{
	static char *debug_folders; /* NULL: those of libdw, /usr/lib/debug */
	static Dwfl_Callbacks callbacks = {.debuginfo_path = &debug_folders};
	void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);

	*(void **)&demangle = dlsym(RTLD_DEFAULT, "__cxa_demangle");
	if (!library)
		return false;
	for (size_t i = 0; i < COUNT(functions); i++) {
		void *function = dlsym(library, functions[i].name);

		if (!function)
			return false;
		memcpy((char *)&dw + functions[i].offset, &function, sizeof(function));
	}
	/* dwfl_standard_find_debuginfo() would ask servers of debuginfod(8), too. */
	callbacks.find_debuginfo = dw.find_debuginfo;
	program = dw.begin(&callbacks);
	return program;
}

/* --- files --- */

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* Returns the path as the compiler was given it: relative to the folder of the compilation. */
static const char *shorten(const char *path, const char *folder)
{
	const size_t length = folder ? strlen(folder) : 0;

	if (length && !strncmp(path, folder, length) && path[length] == '/')
		path += length + 1;
	while (!strncmp(path, "./", 2))
		path += 2;
	return path;
}

static Dwfl_Module *find_module(const struct module *module, uintptr_t address)
{
	Dwfl_Module *found = dw.module_at(program, address);

	if (found)
		return found;
	dw.report_begin_add(program);
	dw.report_elf(program, base_name(module->path), module->path, -1, module->base, true);
	dw.report_end(program, NULL, NULL);
	return dw.module_at(program, address);
}

/* --- names --- */

/* Adds "::name" or "name". */
static void add_name(char *text, size_t size_bytes, const char *name)
{
	const size_t used = strlen(text);

	snprintf(text + used, size_bytes - used, "%s%s", used ? "::" : "", name);
}

/* Follows a function to its declaration, which stands in its class and namespace. */
static Dwarf_Die declaration_of(Dwarf_Die *die)
{
	static const unsigned int links[] = {DW_AT_abstract_origin, DW_AT_specification};
	Dwarf_Die found = *die;

	for (size_t i = 0; i < COUNT(links); i++) {
		Dwarf_Attribute attribute;
		Dwarf_Die next;

		if (dw.attribute(&found, links[i], &attribute) && dw.reference(&attribute, &next))
			found = next;
	}
	return found;
}

/* Writes the name of a function with its classes and namespaces, such as "net::Peer::connect". */
static void name_function(Dwarf_Die *die, char *text, size_t size_bytes)
{
	Dwarf_Die declaration = declaration_of(die), *scopes = NULL;
	int count = dw.scopes_of(&declaration, &scopes);
	const char *name = dw.name(&declaration);

	text[0] = '\0';
	while (--count > 0) {
		switch (dw.tag(&scopes[count])) {
		case DW_TAG_namespace:
		case DW_TAG_class_type:
		case DW_TAG_structure_type:
		case DW_TAG_union_type:
			add_name(text, size_bytes, dw.name(&scopes[count]) ?: "(anonymous)");
			break;
		default:
			break;
		}
	}
	free(scopes);
	add_name(text, size_bytes, name ?: "(unnamed)");
}

/* Returns the name of a verb without leading underscores: the header's "__ibv_reg_mr" is what the
 * macro ibv_reg_mr() becomes. NULL: it is no verb. */
static const char *verb_in(const char *name)
{
	name += strspn(name, "_");
	return strncmp(name, "ibv_", 4) == 0 || strncmp(name, "vb_", 3) == 0 ? name : NULL;
}

/* Returns true for a header in a folder "infiniband" or "verbena". */
static bool is_header_of_verbs(const char *path)
{
	static const char *const folders[] = {"infiniband", "verbena"};
	const char *file = base_name(path), *end = strrchr(path, '.');

	if (!end || strcmp(end, ".h") != 0)
		return false;
	for (size_t i = 0; i < COUNT(folders); i++) {
		const size_t length = strlen(folders[i]) + 1;

		if ((size_t)(file - path) >= length &&
		    !strncmp(file - length, folders[i], length - 1))
			return true;
	}
	return false;
}

/* Rust ends its names with a hash: "::h" and 16 digits. */
static void drop_hash(char *name)
{
	const size_t length = strlen(name);
	char *hash = length > 19 ? name + length - 19 : NULL;

	if (hash && !strncmp(hash, "::h", 3) && strspn(hash + 3, "0123456789abcdef") == 16)
		*hash = '\0';
}

/* --- descriptions --- */

struct spot {
	const char *file;
	int line;
};

/* Where an inlined function is called. */
static void read_call(Dwarf_Die *die, Dwarf_Die *unit, struct spot *spot)
{
	Dwarf_Word file = 0, line = 0;
	Dwarf_Attribute attribute;
	Dwarf_Files *files;
	size_t count;

	if (dw.attribute(die, DW_AT_call_file, &attribute))
		dw.number(&attribute, &file);
	if (dw.attribute(die, DW_AT_call_line, &attribute))
		dw.number(&attribute, &line);
	spot->file = dw.files_of(unit, &files, &count) ? NULL : dw.file_at(files, file, NULL, NULL);
	spot->line = (int)line;
}

/* The functions around a call, from the outermost: those behind the first are inlined. */
#define FUNCTIONS_MAX 32

struct nest {
	Dwarf_Die functions[FUNCTIONS_MAX];
	int count;
};

static bool is_scope(int tag)
{
	return tag == DW_TAG_namespace || tag == DW_TAG_class_type ||
	       tag == DW_TAG_structure_type || tag == DW_TAG_module;
}

/*
 * Finds the functions around an address below a DIE; returns false if there are none.
 * dwarf_getscopes() does not: with link-time optimisation, the definitions of inlined functions are
 * in other units, and it then finds nothing.
 */
static bool find_nest(Dwarf_Die *parent, Dwarf_Addr address, struct nest *nest)
{
	Dwarf_Die die;

	if (dw.child(parent, &die))
		return false;
	do {
		const int tag = dw.tag(&die);

		if (is_scope(tag) && find_nest(&die, address, nest))
			return true;
		if (is_scope(tag) || dw.has_address(&die, address) <= 0)
			continue;
		if ((tag == DW_TAG_subprogram || tag == DW_TAG_inlined_subroutine) &&
		    nest->count < FUNCTIONS_MAX)
			nest->functions[nest->count++] = die;
		find_nest(&die, address, nest);
		return true;
	} while (!dw.sibling(&die, &die));
	return false;
}

/* Returns the verb if the function is one, and its code is in a header of verbs; else NULL. */
static const char *header_verb(Dwarf_Die *function, const char *file)
{
	Dwarf_Die declaration = declaration_of(function);
	const char *name = dw.name(&declaration);

	return file && name && is_header_of_verbs(file) ? verb_in(name) : NULL;
}

/* Goes outwards from the call to the first function that is no verb of a header; NULL if there is
 * none. */
static Dwarf_Die *find_function(struct nest *nest, Dwarf_Die *unit, struct spot *spot,
				struct symbol *symbol)
{
	for (int i = nest->count - 1; i >= 0; i--) {
		Dwarf_Die *function = &nest->functions[i];
		const char *verb = header_verb(function, spot->file);

		if (!verb)
			return function;
		snprintf(symbol->verb, sizeof(symbol->verb), "%s", verb);
		if (dw.tag(function) == DW_TAG_subprogram) {
			symbol->is_verb = true;
			return function;
		}
		read_call(function, unit, spot);
	}
	return NULL;
}

/* Finds the unit of an address; compilers may leave out the table of addresses (clang does). */
static Dwarf_Die *find_unit(Dwfl_Module *module, Dwarf_Addr address, Dwarf_Addr *bias)
{
	Dwarf_Die *unit = dw.unit_at(module, address, bias);

	if (unit)
		return unit;
	while ((unit = dw.next_unit(module, unit, bias)))
		if (dw.has_address(unit, address - *bias) > 0)
			return unit;
	return NULL;
}

static const char *folder_of(Dwarf_Die *unit)
{
	Dwarf_Attribute attribute;

	return dw.attribute(unit, DW_AT_comp_dir, &attribute) ? dw.string(&attribute) : NULL;
}

/* Writes the name of a function of the symbol table, such as "main()". */
static void name_symbol(const char *mangled, char *text, size_t size_bytes)
{
	char *readable = demangle ? demangle(mangled, NULL, NULL, NULL) : NULL;
	size_t length;

	snprintf(text, size_bytes, "%s", readable ?: mangled);
	free(readable);
	drop_hash(text);
	length = strlen(text);
	/* C++ names end with the parameters. */
	if (length && text[length - 1] != ')')
		snprintf(text + length, size_bytes - length, "()");
}

/* Writes the name of the function that the call is in; false if it is unknown. */
static bool name_call(Dwarf_Die *function, const char *mangled, char *text, size_t size_bytes)
{
	if (function) {
		name_function(function, text, size_bytes);
		snprintf(text + strlen(text), size_bytes - strlen(text), "()");
	} else if (mangled && !verb_in(mangled)) {
		/* clang -g1 leaves out functions into which nothing is inlined. */
		name_symbol(mangled, text, size_bytes);
	} else {
		return false;
	}
	return true;
}

/* Describes the call by debug information; false if there is none. */
static bool describe_source(Dwfl_Module *module, uintptr_t address, const char *mangled,
			    struct symbol *symbol)
{
	Dwarf_Addr bias;
	Dwarf_Die *unit = find_unit(module, address, &bias), *function = NULL;
	Dwarf_Line *line = unit ? dw.line_at(unit, address - bias) : NULL;
	struct nest nest = {.count = 0};
	struct spot spot = {0};
	char name[NAME_BYTES];

	if (!line)
		return false;
	spot.file = dw.line_file(line, NULL, NULL);
	dw.line_number(line, &spot.line);
	if (find_nest(unit, address - bias, &nest))
		function = find_function(&nest, unit, &spot, symbol);
	if (!spot.file || !name_call(function, mangled, name, sizeof(name)))
		return false;
	snprintf(symbol->text, sizeof(symbol->text), "%s at %s:%d", name,
		 shorten(spot.file, folder_of(unit)), spot.line);
	return true;
}

/* Describes the call by the name of its function, and the offset that addr2line(1) takes. */
static void describe_offset(const char *mangled, uintptr_t address, const struct module *module,
			    struct symbol *symbol)
{
	const char *verb = mangled ? verb_in(mangled) : NULL;
	char name[NAME_BYTES] = "";

	if (verb) {
		snprintf(symbol->verb, sizeof(symbol->verb), "%s", verb);
		symbol->is_verb = true;
	}
	if (mangled)
		name_symbol(mangled, name, sizeof(name));
	snprintf(symbol->text, sizeof(symbol->text), "%s%s%s+0x%lx", name, *name ? " at " : "",
		 base_name(module->path), (unsigned long)(address - module->base));
}

void symbol_describe(uintptr_t address, const struct module *module, const char *exported,
		     struct symbol *symbol)
{
	const uintptr_t call = address - 1; /* inside the instruction that calls */
	Dwfl_Module *found = program ? find_module(module, call) : NULL;
	const char *mangled = exported || !found ? exported : dw.name_at(found, call);

	*symbol = (struct symbol){0};
	if (!found || !describe_source(found, call, mangled, symbol))
		describe_offset(mangled, call, module, symbol);
}
