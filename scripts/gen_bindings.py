#!/usr/bin/env python3
"""gen_bindings.py: from the vendor's mpi.h and libpacx/mpi.api to the interposition layer.

    gen_bindings.py VENDOR_CC OUTDIR      writes OUTDIR/{mpi,vendor_table.h,vendor_first.h,bind.c,bind.h,libpacx.map}

mpi:            what is known of the MPI, see mpi_identity.py.
vendor_table.h: struct px_native, one pointer per function; PX_HAVE_<Name>; PX_NATIVE_NAMES(X); PX_MPI_IDENTITY, PX_MPI_SONAME, PX_ABI; data
                of the vendor's are weak references: a library that lacks one can be loaded.
vendor_first.h: px_n as it is at the start: functions that load the vendor's and then call those; px_lacking: functions that
                stand for those which the loaded library has not got.
bind.c:         the exported MPI_X and PMPI_X, for every class but `native`. PMPI_X is libpacx's own; MPI_X goes through a
                table to that or to another tool's MPI_X; px_exported[] lists them for front.c, which fills the table.
bind.h:         prototypes of the bodies px_<Name> (classes `own`).
libpacx.map:    linker version script: what leaves the library.

The rules by which a body's prototype follows from the function's: the communicator becomes struct px_comm *c
(not with `any`), a file struct px_file *f, with `win` the window struct px_win *w (and a pointer to it both), counts that go
with a datatype are MPI_Count; arrays of counts are of MPI_Count, arrays of displacements of MPI_Aint: for the int form they are made.
"""
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True
from mpi_h import Func, Param, data_names, header, lookup, prototypes, read_api, reason, stem, symbol_name  # noqa: E402
from mpi_identity import describe  # noqa: E402


def is_count(f, p):
    """A scalar count of elements of a datatype: 64 bits wide in a body."""
    return (p.type in ("int", "MPI_Count") and not p.array and re.match(r"^((send|recv|origin_|result_|target_|in|out)?count|target_cout)$", p.name)
            and any("MPI_Datatype" in q.type for q in f.params))


def wide(f, p):
    """The type in a body of an array of counts or displacements; None for what is no such array. (Names of parameters differ among MPIs.)"""
    if not p.array or not re.search(r"(ather|catter|toall)[vw](_init)?(_c)?$|educe_scatter(_init)?(_c)?$", f.name):
        return None
    if p.type not in ("int", "const int", "const MPI_Count", "const MPI_Aint"):
        return None
    return "const MPI_Aint" if "displ" in p.name else "const MPI_Count"


def body(f, opts, prefix="px_"):
    """Prototype of px_<Name>; f is the int form."""
    if "before" in opts:
        return f"void px_{stem(f.name)}(void)"
    out = []
    for p in f.params:
        if f.name.startswith("Request_get_status_") and p.type == "MPI_Request":
            p = Param("const MPI_Request " + p.name + p.array)  # MPICH 4.2 has it without
        if f.name.startswith("Request_get_status_") and p.name == "array_of_statuses":
            p = Param("MPI_Status *array_of_statuses")
        if f.name == "Pready_list" and p.array:
            p = Param("const int " + p.name + p.array)  # likewise
        if p.type == "MPI_Comm" and not p.array and "any" not in opts:
            out.append("struct px_comm *c")
        elif p.type == "MPI_File" and not p.array:
            out.append("struct px_file *f")
        elif "win" in opts and p.type.startswith("MPI_Win"):
            out.append("struct px_win *w" + (", MPI_Win *win" if p.type.endswith("*") else ""))
        elif is_count(f, p):
            out.append(p.decl("MPI_Count"))
        elif wide(f, p):
            out.append(p.decl(wide(f, p)))
        elif p.name == "disp_unit":
            out.append(p.decl("MPI_Aint"))
        else:
            out.append(p.decl())
    return f"int {prefix}{stem(f.name)}({', '.join(out) or 'void'})"


def twin(f, funcs):
    """Statements that do blocking f by a nonblocking call on n; None when there is no way."""
    large = "_c" if f.name.endswith("_c") else ""
    base = f.name[:-2] if large else f.name
    a = [("native" if p.type == "MPI_Comm" else p.name) for p in f.params]
    if base == "Probe":
        return [f"return probe_native({', '.join(a)});"]
    if base == "Mprobe":
        return [f"return mprobe_native({', '.join(a)});"]
    if base == "Sendrecv":
        return ["MPI_Request r[2];",
                "",
                f"rc = px_n.Irecv{large}(recvbuf, recvcount, recvtype, source, recvtag, native, &r[0]);",
                "if (rc != MPI_SUCCESS)",
                "\treturn rc;",
                f"rc = px_n.Isend{large}(sendbuf, sendcount, sendtype, dest, sendtag, native, &r[1]);",
                "if (rc == MPI_SUCCESS)",
                "\trc = wait_native(&r[1], MPI_STATUS_IGNORE);",
                "if (rc == MPI_SUCCESS)",
                "\trc = wait_native(&r[0], status);",
                "return received(rc, source, status);"]
    if base == "Sendrecv_replace" and "Isendrecv_replace" not in funcs:
        return None
    name = "I" + base[0].lower() + base[1:]
    if base == "Bsend" or name + large not in funcs:
        return None
    blocking = [p.name for p in f.params if "MPI_Status" not in p.type]
    if [p.name for p in funcs[name + large].params[:-1]] != blocking and len(funcs[name + large].params) - 1 != len(blocking):
        return None
    args = [("native" if p.type == "MPI_Comm" else p.name) for p in f.params if "MPI_Status" not in p.type]
    status = next((p.name for p in f.params if "MPI_Status" in p.type), "MPI_STATUS_IGNORE")
    done = "rc" if not any(p.name == "source" for p in f.params) else f"received(rc, source, {status})"
    start = [f"rc = px_n.{name}{large}({', '.join(args)}, &r);"]
    if base == "Sendrecv_replace":  # that of MPICH 4.0 never completes when one of them is MPI_PROC_NULL
        start = ["if (dest == MPI_PROC_NULL)",
                 f"\trc = px_n.Irecv{large}(buf, count, datatype, source, recvtag, native, &r);",
                 "else if (source == MPI_PROC_NULL)",
                 f"\trc = px_n.Isend{large}(buf, count, datatype, dest, sendtag, native, &r);",
                 "else",
                 "\t" + start[0]]
    if base == "Alltoallw":  # in place MPICH 4.0's MPI_Ialltoallw moves wrong data; the blocking call waits for nobody once all have come
        start = ["if (sendbuf == MPI_IN_PLACE) {",
                 f"\trc = meet({f.comms()[0].name}, native);",
                 f"\treturn rc != MPI_SUCCESS ? rc : {native_call(f)};",
                 "}", *start]
    return ["MPI_Request r;",
            "",
            *start,
            "if (rc == MPI_SUCCESS)",
            f"\trc = wait_native(&r, {status});",
            f"return {done};"]


# These have nonblocking twins that match the blocking calls of others.
POINT_TO_POINT = {"Send", "Ssend", "Rsend", "Recv", "Mrecv", "Sendrecv", "Sendrecv_replace", "Probe", "Mprobe"}


def vector_kind(f, p):
    """Which length an array of counts has, for px_vector_len."""
    if "eighbor_" in f.name:
        return "PX_VECTOR_OUT" if p.name.startswith(("send", "sdis")) else "PX_VECTOR_IN"
    if "educe_scatter" in f.name:
        return "PX_VECTOR_LOCAL"
    return "PX_VECTOR_ROOT, root" if any(q.name == "root" for q in f.params) else "PX_VECTOR_ALL"


NULLS = {"MPI_Comm *": "MPI_COMM_NULL", "MPI_Win *": "MPI_WIN_NULL", "MPI_File *": "MPI_FILE_NULL", "MPI_Request *": "MPI_REQUEST_NULL",
         "MPI_Group *": "MPI_GROUP_NULL"}


def null_outputs(f):
    """What a call that makes something has given before it has made it, and when it fails."""
    return [f"*{p.name} = {NULLS[p.type]};" for p in f.params if p.type in NULLS and not p.array]


# What a call gives back in its arguments, one each; a status may be ignored.
OUTPUTS = {"int *", "MPI_Count *", "MPI_Aint *", "MPI_Comm *", "MPI_Group *", "MPI_Request *", "MPI_Message *"}


def no_output(f, c):
    """Statements that raise MPI_ERR_ARG where there is no room for what f gives back, as the vendors do."""
    names = [p.name for p in f.params if p.type in OUTPUTS and not p.array]
    if not names:
        return []
    return [f"if (PX_UNLIKELY({' || '.join('!' + n for n in names)}))", f'\treturn px_raise_no_output({c}, "{symbol_name(f.name)}");']


# MPICH looks at the datatype of these only where the count is not 0: they take MPI_DATATYPE_NULL then. (Its MPI_Bcast does so, too, and crashes.)
EMPTY_TYPE = {"Send", "Bsend", "Ssend", "Rsend", "Isend", "Ibsend", "Issend", "Irsend", "Send_init", "Bsend_init", "Ssend_init", "Rsend_init",
              "Recv", "Irecv", "Recv_init", "Mrecv", "Imrecv", "Sendrecv_replace", "Isendrecv_replace", "Psend_init", "Precv_init"}


def call_body(f, small, opts):
    """Statements that call px_<Name> from f, whose int form is small; c or n is set."""
    pre, outs, args = [], [], []
    for p, q in zip(f.params, small.params):
        if p.type == "MPI_Comm" and not p.array:
            args.append(("native" if len(f.comms()) == 1 else "PX_MAP(%s)" % p.name) if "any" in opts else "c")
        elif p.type == "MPI_File" and not p.array:
            args.append("f")
        elif "win" in opts and p.type.startswith("MPI_Win"):
            args.append("w, win" if p.type.endswith("*") else "w")
        elif wide(f, p) and p.type != wide(f, p):
            kind = vector_kind(f, p)
            guard = "sendbuf" if p.name.startswith(("send", "sdis")) and any(x.name == "sendbuf" for x in f.params) else None
            cond = f"{guard} == MPI_IN_PLACE ? 0 : " if guard else ""
            kind += "" if "root" in kind else ", 0"
            made = wide(f, p).split()[1]
            pre.append((made, p.name, f"wide_{made}({p.name}, {cond}px_vector_len(c, {kind}, &rc), &rc)"))
            args.append(p.name + "_")
        elif p.type == "MPI_Count *" and q.type == "MPI_Aint *":  # an extent that comes back
            outs.append(p.name)
            args.append(f"&{p.name}_")
        elif p.type == "MPI_Datatype" and stem(small.name) in EMPTY_TYPE:
            args.append(f"empty_type({next(x.name for x in f.params if is_count(small, x) or x.name == 'count')}, {p.name})")
        else:
            args.append(p.name)
    lock = "nolock" not in opts
    nulls = null_outputs(f) if "c" in args else []
    call = f"px_{stem(small.name)}({', '.join(args)})"
    ours = "any" in opts or any(p.type == "MPI_Group" for p in f.params)
    checks = no_output(f, "c") if "c" in args else no_output(f, "NULL") if ours and lock else []
    out = []
    if "c" in args and "inter" in opts:
        call = f"c->inter ? px_inter_{stem(small.name)}({', '.join(args)}) : {call}"
    elif "c" in args and "either" not in opts:
        call = f'c->inter ? px_not_inter(c) : {call}'
    if pre:
        out += [*checks, f'outer = px_begin("{symbol_name(f.name)}");', *(f"{made} *{n}_ = {e};" for made, n, e in pre), "", *nulls]
        out += [f"rc = rc == MPI_ERR_NO_MEM ? px_raise_memory(c) : {call};", "px_end(outer);"]
        out += [f"free({n}_);" for _, n, _ in pre] + ["return rc;"]
        return out
    if not lock:
        return [f"return {call};"]
    lines = [*checks, *nulls, f'outer = px_begin("{symbol_name(f.name)}");', f"rc = {call};", "px_end(outer);"]
    if outs:
        lines = ["{", *indent([*(f"MPI_Aint {n}_ = 0;" for n in outs), "", *lines, *(f"*{n} = {n}_;" for n in outs)]), "}"]
    return [*lines, "return rc;"]


def native_call(f, mapped=True):
    args = []
    for p in f.params:
        if mapped and p.type == "MPI_Comm" and not p.array:
            args.append("native" if len(f.comms()) == 1 else f"PX_MAP({p.name})")
        else:
            args.append(p.name)
    return f"px_n.{f.name}({', '.join(args)})"


def beyond(f):
    """Lines that refuse a group with members at other sites, where the vendor would get the token that stands for it. (A null handle is its affair.)"""
    groups = [p.name for p in f.params if p.type == "MPI_Group" and not p.array]
    given, comm = (f"{f.comms()[0].name} != MPI_COMM_NULL", f.comms()[0].name) if f.comms() else ("win != MPI_WIN_NULL", "MPI_COMM_WORLD")
    return [line for g in groups for line in (f"if (PX_UNLIKELY({given} && px_group_spans({g})))",
                                              f'\treturn px_raise_beyond({comm}, "{symbol_name(f.name)}");')]


def indent(lines, by=1):
    return [("\t" * by + s) if s else "" for s in lines]


# Open MPI 4.1 crashes, or ends the program whatever the error handler, when one of these gets MPI_COMM_NULL.
NULL_COMM = {"Probe", "Iprobe", "Mprobe", "Improbe", "Allgather"}


def trampoline(f, funcs, cls, opts):
    """The exported function, as a list of lines."""
    small = funcs[f.name[:-2]] if f.name.endswith("_c") and f.name[:-2] in funcs else f
    comms, b = f.comms(), []
    void = [f"(void){p.name};" for p in f.params]
    if "before" in opts:
        b = ["MPI_Comm native = PX_MAP(comm);", ""] if comms else []
        b += ["if (px_active) {", "\tpx_lock();", f"\tpx_{small.name}();", "\tpx_unlock();", "}", f"return {native_call(f)};"]
    elif cls == "call":
        b = ["MPI_Comm native = PX_MAP(comm);", ""]
        if "both" in opts:
            b += ["if (comm != native) {", f"\tint rc = {native_call(f, False)};", "", "\tif (rc != MPI_SUCCESS)", "\t\treturn rc;", "}"]
        b += [f"return {native_call(f)};"]
    elif cls == "refused" and not comms:
        b = ["if (!px_active)", f"\treturn {native_call(f)};", *void, *null_outputs(f), f'return px_unsupported(NULL, "{symbol_name(f.name)}", "{reason(f.name)}");']
    elif f.name == "File_open":  # its I/O component is loaded in here and must be sealed, too
        b = ["MPI_Comm native = PX_MAP(comm);", "struct px_comm *c = px_comm_find(native);", "const char *outer;", "int rc;", "", "if (PX_UNLIKELY(c)) {",
             *indent(call_body(f, small, opts)), "}", "rc = meet(comm, native);", "if (rc != MPI_SUCCESS)", "\treturn rc;", f"rc = {native_call(f)};",
             "if (px_active)", "\tpx_vendor_seal();", "return rc;"]
    elif f.files():
        b = [f"struct px_file *f = px_file_find({f.files()});", "const char *outer;", "int rc;", "", "if (PX_LIKELY(!f))", f"\treturn {native_call(f)};", *call_body(f, small, opts)]
    elif cls == "refused":
        if len(comms) == 1:
            b = [f"MPI_Comm native = PX_MAP({comms[0].name});", "struct px_comm *c = px_comm_find(native);", "", "if (PX_LIKELY(!c))"]
        else:
            find = [f"px_comm_find(PX_MAP({p.name}))" for p in comms]
            b = [f"struct px_comm *c = {find[0]};", "", f"if (!c && {comms[0].name} != MPI_COMM_NULL)", f"\tc = {find[1]};", "if (PX_LIKELY(!c))"]
        if "meet" in opts and len(comms) == 1:
            b[-1:] = ["if (PX_LIKELY(!c)) {", f"\tint rc = meet({comms[0].name}, native);", "",
                      f"\treturn rc != MPI_SUCCESS ? rc : {native_call(f)};", "}",
                  *null_outputs(f), f'return px_unsupported(c, "{symbol_name(f.name)}", "{reason(f.name)}");']
        else:
            b += [f"\treturn {native_call(f)};", *null_outputs(f), f'return px_unsupported(c, "{symbol_name(f.name)}", "{reason(f.name)}");']
    elif "win" in opts:
        pointer = any(p.type == "MPI_Win *" for p in f.params)
        b = [f"struct px_win *w = px_win_find({'*' if pointer else ''}win);", "const char *outer;", "int rc;", "", "if (PX_LIKELY(!w)) {",
             *indent(beyond(f)), f"\treturn {native_call(f)};", "}", *call_body(f, small, opts)]
    elif "any" in opts or not comms:
        if "nolock" not in opts:
            b = ["const char *outer;", "int rc;", "", "if (!px_active)", f"\treturn {native_call(f, False)};"]
        if len(comms) == 1:
            b = [f"MPI_Comm native = PX_MAP({comms[0].name});"] + ([""] if not b else []) + b
        b += call_body(f, small, opts)
    else:
        b = [f"MPI_Comm native = PX_MAP({comms[0].name});", "struct px_comm *c = px_comm_find(native);"]
        spanning = call_body(f, small, opts)
        t = twin(f, funcs)
        rc = t and "MPI_Request" in t[0] or any("rc" in x for x in spanning)
        block = any(" = wide_" in x for x in spanning)  # declarations need a block of their own
        b += ["const char *outer;"] if any(x.startswith("outer =") for x in spanning) else []
        b += ["int rc = MPI_SUCCESS;" if block else "int rc;"] if rc else []
        b += ["", "if (PX_LIKELY(!c)) {", *indent(beyond(f))]
        if small.name in NULL_COMM:
            b += [f"\tif (PX_UNLIKELY({comms[0].name} == MPI_COMM_NULL))", f'\t\treturn px_raise_null("{symbol_name(f.name)}");']
        if t:
            # A nonblocking collective does not match a blocking one (MPI 5.12): all members must choose alike, so
            # the choice may not depend on what one rank has to do at the moment.
            when = "px_must_poll()" if small.name in POINT_TO_POINT else "px_must_meet() && native != MPI_COMM_SELF"
            b += [f"\tif (PX_UNLIKELY({when})) {{", *indent(t, 2), "\t}"]
        elif "meet" in opts:
            b += [f"\trc = meet({comms[0].name}, native);", "\tif (rc != MPI_SUCCESS)", "\t\treturn rc;"]
        elif "hook" in opts:  # nonblocking collectives do not match the blocking ones of processes that PACX does not know
            b += ["\tif (px_must_meet()) {", *indent(null_outputs(f), 2),
                  f'\t\treturn px_unsupported(NULL, "{symbol_name(f.name)}", "not with PACX_PROGRESS=poll");', "\t}"]
        b += [f"\treturn {native_call(f)};", "}"] + spanning
        if block:
            b = b[:-len(spanning)] + ["{", *indent(spanning), "}"]
    args = ", ".join(p.name for p in f.params)
    return [f"#undef {symbol_name(f.name)}", f"#undef P{symbol_name(f.name)}",
            f"static int own_{f.name}({f.decl()})", "{", *indent(b), "}",
            f'int P{symbol_name(f.name)}({f.decl()}) __attribute__((alias("own_{f.name}")));',
            f"int {symbol_name(f.name)}({f.decl()});",
            f"int {symbol_name(f.name)}({f.decl()})", "{", f"\treturn front.{f.name}({args});", "}",
            f"static int first_{f.name}({f.decl()})", "{", "\tpx_front_begin();", f"\treturn front.{f.name}({args});", "}", ""]


HEAD = "/* Generated by scripts/gen_bindings.py from mpi.h and libpacx/mpi.api: do not edit. */\n"


def classed(api, funcs):
    """Func -> row. A function without a row is refused where it takes a communicator, else native."""
    out = {}
    for name, f in sorted(funcs.items()):
        row = lookup(api, name, funcs)
        if row is None:
            row = ("refused" if f.comms() and f.ret == "int" and not f.variadic else "native", set())
            print(f"gen_bindings: warning: {symbol_name(name)} has no row in libpacx/mpi.api; taken as {row[0]}", file=sys.stderr)
        out[name] = (f, *row)
    return out


def vendor_table(funcs, about, data):
    out = [HEAD, "#ifndef PX_VENDOR_TABLE_H", "#define PX_VENDOR_TABLE_H", "", "#include <mpi.h>", "", "struct px_native {"]
    out += [f"\t{f.ret} (*{n})({f.decl()});" for n, f in sorted(funcs.items())] + ["};", ""]
    out += [f"#define PX_HAVE_{n} 1" for n in sorted(funcs)]
    out += ["", f'#define PX_MPI_IDENTITY "{about["identity"]}"', f'#define PX_MPI_SONAME "{about["soname"]}"', ""]
    out += ["#define PX_ABI 1 /* the standard ABI's mpi.h, which is no vendor's */", ""] if about["flavor"] == "abi" else []
    out += [f"#pragma weak {n}" for n in data]
    out += ["", "#define PX_NATIVE_NAMES(X) \\"] + [f"\tX({n}) \\" for n in sorted(funcs)] + ["", "#endif", ""]
    return "\n".join(out)


def vendor_first(funcs):
    out = [HEAD, '#pragma GCC diagnostic ignored "-Wdeprecated-declarations"', ""]
    for n, f in sorted(funcs.items()):
        args = ", ".join(p.name for p in f.params)
        out += [f"static {f.ret} first_{n}({f.decl()})", "{", "\tpx_vendor_first();", f"\treturn px_n.{n}({args});", "}", ""]
    for n, f in sorted(funcs.items()):
        unused = [f"\t(void){p.name};" for p in f.params]
        out += [f"static {f.ret} lacking_{n}({f.decl()})", "{", *unused, f'\treturn ({f.ret})(intptr_t)px_vendor_lacking("{symbol_name(n)}");', "}"]
    out += ["struct px_native px_n = {"] + [f"\t.{n} = first_{n}," for n in sorted(funcs)] + ["};", ""]
    out += ["static const struct px_native px_lacking = {"] + [f"\t.{n} = lacking_{n}," for n in sorted(funcs)] + ["};", ""]
    return "\n".join(out)


def bind_h(rows):
    out = [HEAD, "#ifndef PX_BIND_H", "#define PX_BIND_H", "", "#include <mpi.h>", "", '#include "comm_find.h"', '#include "lock.h"', "", "struct px_file;", "struct px_win;", ""]
    for name, (f, cls, opts) in rows.items():
        if cls == "own" and not (name.endswith("_c") and name[:-2] in rows) and not (name.startswith("X_") and name[2:] in rows):
            out.append(body(f, opts) + ";")
            if "inter" in opts:
                out.append(body(f, opts, "px_inter_") + ";")
    out += ["", "#endif", ""]
    return "\n".join(out)


HELPERS = """
static int wait_native(MPI_Request *request, MPI_Status *status)
{
	int rc;

	px_lock();
	rc = px_wait_native(request, status);
	px_unlock();
	return rc;
}

/* The status of a receive that was waited for: MPICH's request of a receive from MPI_PROC_NULL says rank 0. */
static int received(int rc, int source, MPI_Status *status)
{
	if (rc != MPI_SUCCESS || source != MPI_PROC_NULL)
		return rc;
	return px_n.Recv(NULL, 0, MPI_BYTE, MPI_PROC_NULL, 0, MPI_COMM_SELF, status);
}

/* Before a native collective that has no nonblocking form, where native calls may not block: all members of a local communicator
 * come together with progress, so that the blocking call which follows waits for nobody who waits for us. */
static int meet(MPI_Comm comm, MPI_Comm native)
{
	int rc;

	if (PX_LIKELY(!px_must_meet()) || comm == MPI_COMM_SELF || comm == MPI_COMM_NULL) /* the call that follows says so */
		return MPI_SUCCESS;
	px_lock();
	rc = px_meet(native);
	px_unlock();
	return rc;
}

/* See EMPTY_TYPE in gen_bindings.py. */
static inline MPI_Datatype empty_type(MPI_Count count, MPI_Datatype t)
{
#ifndef OPEN_MPI
	if (PX_UNLIKELY(t == MPI_DATATYPE_NULL) && count == 0)
		return MPI_BYTE;
#else
	(void)count;
#endif
	return t;
}

/* Probing natively while remote operations need progress. */
static int probe_native(int source, int tag, MPI_Comm native, MPI_Status *status)
{
	struct px_wait w;
	int flag = 0, rc;

	px_wait_init(&w);
	while ((rc = px_n.Iprobe(source, tag, native, &flag, status)) == MPI_SUCCESS && !flag) {
		px_lock();
		px_relax(&w, px_progress());
		px_unlock();
	}
	return rc;
}

static int mprobe_native(int source, int tag, MPI_Comm native, MPI_Message *message, MPI_Status *status)
{
	struct px_wait w;
	int flag = 0, rc;

	px_wait_init(&w);
	while ((rc = px_n.Improbe(source, tag, native, &flag, message, status)) == MPI_SUCCESS && !flag) {
		px_lock();
		px_relax(&w, px_progress());
		px_unlock();
	}
	return rc;
}
"""

WIDE = """
enum px_vector { PX_VECTOR_ALL, PX_VECTOR_LOCAL, PX_VECTOR_ROOT, PX_VECTOR_IN, PX_VECTOR_OUT };

/* Entries of an array argument which this process may read: one per rank (of the remote group), or per rank of the local group; the
 * same at the root, else none; one per in- or out-neighbour. */
static int px_vector_len(struct px_comm *c, enum px_vector kind, int root, int *rc)
{
	int nin = 0, nout = 0, *in = NULL, *out = NULL;

	if (kind == PX_VECTOR_LOCAL)
		return c->inter ? c->inter->size : c->size;
	if (kind == PX_VECTOR_ALL || kind == PX_VECTOR_ROOT)
		return kind == PX_VECTOR_ALL || root == (c->inter ? MPI_ROOT : c->rank) ? c->size : 0;
	*rc = px_topo_neighbors(c, &nin, &in, &nout, &out);
	if (*rc != MPI_SUCCESS)
		return 0;
	free(in);
	free(out);
	return kind == PX_VECTOR_IN ? nin : nout;
}

/* Arrays of int for bodies that take wider ones: a copy, or NULL for no entries; MPI_ERR_NO_MEM in *rc. */
#define WIDE(type) \\
	static type *wide_##type(const int from[], int n, int *rc) \\
	{ \\
		type *to = from && n > 0 ? malloc((size_t)n * sizeof *to) : NULL; \\
\\
		if (from && n > 0 && !to) \\
			*rc = MPI_ERR_NO_MEM; \\
		for (int i = 0; to && i < n; i++) \\
			to[i] = from[i]; \\
		return to; \\
	}
WIDE(MPI_Count)
WIDE(MPI_Aint)
"""


def bind_c(rows, funcs):
    out = [HEAD, "#include <limits.h>", "#include <mpi.h>", "#include <stdlib.h>", "", '#include "bind.h"', '#include "comm.h"', '#include "comm_find.h"',
           '#include "front.h"', '#include "group.h"', '#include "inter.h"', '#include "io/file.h"', '#include "lock.h"', '#include "raise.h"', '#include "request.h"', '#include "rma/win_find.h"', '#include "topo.h"', '#include "vendor.h"', '#include "wait.h"', "", '#pragma GCC diagnostic ignored "-Wdeprecated-declarations"', ""]
    out.append(HELPERS)
    out.append(WIDE)
    out += ["static struct px_native front; /* where MPI_X goes: see front.h */", ""]
    exported = sorted((f.name, f, cls, opts) for f, cls, opts in rows.values() if cls != "native")
    for _, f, cls, opts in exported:
        out += trampoline(f, funcs, cls, opts)
    out += ["static struct px_native front = {"] + [f"\t.{n} = first_{n}," for n, *_ in exported] + ["};", ""]
    out += ["const struct px_exported px_exported[] = {"]
    out += [f'\t{{ "{n}", (px_any_fn *)own_{n}, (px_any_fn **)(void *)&front.{n} }},' for n, *_ in exported]
    out += ["};", "const size_t px_exported_count = sizeof px_exported / sizeof px_exported[0];", ""]
    return "\n".join(out)


def taken_over(vendor):
    """What libpacx takes over beside MPI_ functions: of what the C++ and Fortran bindings call (comm/errhandler.c, comm/keyval.c), and of UCX (the progress hook)."""
    return ["ompi_mpi_cxx_comm_errhandler_invoke"] if vendor == "openmpi" else ["MPII_Errhandler_set_cxx", "MPII_Keyval_set_proxy", "ucp_worker_progress"]


def fortran_names():
    """Entry points of fortran_attr.c and fortran_alltoallw.c: patterns for the version script."""
    out = []
    for n in ("attr_put", "attr_get", "comm_set_attr", "comm_get_attr", "win_get_attr", "comm_create_keyval", "keyval_create"):
        for p in ("mpi_", "pmpi_"):
            out += [p + n, p + n + "_", p + n + "__", (p + n).upper(), p + n + "_f08_"]
        out += ["ompi_" + n + "_f", "pmpir_" + n + "_f08_"]
    for n in ("alltoallw", "ialltoallw", "neighbor_alltoallw", "ineighbor_alltoallw"):
        for p in ("mpi_", "pmpi_"):
            out += [p + n, p + n + "_", p + n + "__", (p + n).upper()]
        out += ["ompi_" + n + "_f"]
    return out


def leave_names():
    """What leave.c interposes: the ways out of a process that run no exit handler."""
    return ["_exit", "_Exit", "quick_exit", "execve", "execv", "execvp", "execvpe", "execl", "execlp", "execle", "fexecve"]


def dlsym_names():
    """What dlsym_hook.c interposes."""
    return ["dlsym", "dlopen", "dlmopen"]


def version_map():
    # Only our own definitions match; what is native is not defined here and cannot leak.
    names = ["MPI_*", "PMPI_*", "MPIX_*", "PMPIX_*", "pacx_*", "MPICHX_*"] + fortran_names() + leave_names() + dlsym_names() + taken_over("openmpi") + taken_over("mpich")
    return "{\n\tglobal:\n" + "".join(f"\t\t{n};\n" for n in names) + "\tlocal: *;\n};\n"


def main():
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    cc, outdir = sys.argv[1:]
    funcs = prototypes(cc)
    rows = classed(read_api(), funcs)
    os.makedirs(outdir, exist_ok=True)
    text = describe(cc)
    about = dict(line.split(": ") for line in text.splitlines() if not line.endswith(" "))
    files = {"mpi": text, "vendor_table.h": vendor_table(funcs, about, data_names(header(cc))), "vendor_first.h": vendor_first(funcs), "bind.h": bind_h(rows), "bind.c": bind_c(rows, funcs),
             "libpacx.map": version_map()}
    for name, text in files.items():
        with open(os.path.join(outdir, name), "w") as out:
            out.write(text)


if __name__ == "__main__":
    main()
