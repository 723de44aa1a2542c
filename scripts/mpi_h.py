"""mpi_h.py: the functions of an MPI, read from its mpi.h, and the rows of libpacx/mpi.api. Used by gen_bindings.py and check_api.py."""
import os
import re
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
API = os.path.join(ROOT, "libpacx", "mpi.api")

# Exported by Open MPI's library but hidden by its mpi.h (removed in MPI-3.0).
REMOVED = """
int MPI_Address(void *location, MPI_Aint *address);
int MPI_Errhandler_create(MPI_Comm_errhandler_function *function, MPI_Errhandler *errhandler);
int MPI_Errhandler_get(MPI_Comm comm, MPI_Errhandler *errhandler);
int MPI_Errhandler_set(MPI_Comm comm, MPI_Errhandler errhandler);
int MPI_Type_extent(MPI_Datatype type, MPI_Aint *extent);
int MPI_Type_hindexed(int count, int blocklengths[], MPI_Aint displs[], MPI_Datatype oldtype, MPI_Datatype *newtype);
int MPI_Type_hvector(int count, int blocklength, MPI_Aint stride, MPI_Datatype oldtype, MPI_Datatype *newtype);
int MPI_Type_lb(MPI_Datatype type, MPI_Aint *lb);
int MPI_Type_struct(int count, int blocklengths[], MPI_Aint displs[], MPI_Datatype types[], MPI_Datatype *newtype);
int MPI_Type_ub(MPI_Datatype type, MPI_Aint *ub);
"""

# The library of the standard ABI is one for both vendors, whose headers for it are not quite alike: Open MPI's has none of these.
ABI_MORE = """
int MPI_Attr_delete(MPI_Comm comm, int keyval);
int MPI_Attr_get(MPI_Comm comm, int keyval, void *attribute_val, int *flag);
int MPI_Attr_put(MPI_Comm comm, int keyval, void *attribute_val);
int MPI_Precv_init_c(void *buf, int partitions, MPI_Count count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm, MPI_Info info, MPI_Request *request);
int MPI_Psend_init_c(const void *buf, int partitions, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm, MPI_Info info, MPI_Request *request);
"""


def row_name(symbol):
    """What MPI_Send and MPIX_Send are called in the table and in px_n: Send, X_Send."""
    return symbol[4:] if symbol.startswith("MPI_") else symbol[3:]


def symbol_name(name):
    """And back."""
    return "MPI" + name if name.startswith("X_") else "MPI_" + name


def stem(name):
    """The body of MPIX_Send is that of MPI_Send."""
    return name[2:] if name.startswith("X_") else name


class Param:
    """One parameter: type text before the name, name, array suffix after it."""

    def __init__(self, text):
        m = re.match(r"^(.*?)(\w+)((?:\s*\[\d*\])*)$", text.strip())
        self.type, self.name, self.array = re.sub(r"(\w)\*", r"\1 *", m.group(1).strip()), m.group(2), m.group(3).replace(" ", "")
        if not self.type:  # unnamed: MPI_Comm_c2f(MPI_Comm)
            self.type, self.name = self.name, "arg"

    def decl(self, type_=None, name=None):
        t = type_ or self.type
        return t + ("" if t.endswith("*") else " ") + (name or self.name) + self.array


class Func:
    def __init__(self, ret, name, args):
        self.ret, self.name, self.args = ret, name, args
        self.variadic = "..." in args
        plain = args.strip() in ("", "void")
        self.params = [] if plain else [Param(a) for a in args.split(",") if a.strip() != "..."]

    def decl(self):
        if self.variadic:
            return self.args
        return ", ".join(p.decl() for p in self.params) or "void"

    def files(self):
        """Its file handle as an expression, None when it takes none."""
        return next((p.name for p in self.params if p.type == "MPI_File" and not p.array), None)

    def comms(self):
        return [p for p in self.params if p.type == "MPI_Comm" and not p.array]


REASONS = {}  # name -> why it is refused, of the rows read


def reason(name):
    """Why `name` is refused; found as lookup finds its row."""
    return next((REASONS[n] for n in (name, name.removesuffix("_c"), name.removeprefix("X_")) if n in REASONS), "this PACX does not know it")


def read_api(path=API):
    """Name -> (class, set of options). Raises on a row it does not understand."""
    api = {}
    for no, line in enumerate(open(path), 1):
        line = line.split("#")[0].split(maxsplit=2)
        if not line:
            continue
        name, cls, *why = [*line, ""][:3] if len(line) < 3 else line
        cls, _, opts = cls.partition(":")
        if bool("".join(why)) != (cls == "refused"):
            raise SystemExit(f"{path}:{no}: a row is `Name class[:option,...]`, and the reason for class refused alone")
        if cls == "refused":
            REASONS[name] = why[0].strip()
        if cls not in ("native", "call", "own", "refused"):
            raise SystemExit(f"{path}:{no}: class {cls!r} is none of native, call, own, refused")
        if name in api:
            raise SystemExit(f"{path}:{no}: {name} has a second row")
        bad = set(filter(None, opts.split(","))) - {"any", "nolock", "before", "both", "meet", "win", "hook", "either", "inter", "later"}
        if bad:
            raise SystemExit(f"{path}:{no}: unknown option {' '.join(sorted(bad))}")
        api[name] = (cls, set(filter(None, opts.split(","))))
    return api


def lookup(api, name, funcs):
    """The row of `name`; X_c falls under X, MPIX_X under MPI_X. None when there is none."""
    if name in api:
        return api[name]
    if name.endswith("_c") and name[:-2] in api and name[:-2] in funcs:
        return api[name[:-2]]
    if name.startswith("X_") and name[2:] in api:
        return api[name[2:]]
    return None


def header(cc):
    """cc's mpi.h and mpi-ext.h as the compiler sees them, without attributes."""
    source = "#include <mpi.h>\n#if __has_include(<mpi-ext.h>)\n#include <mpi-ext.h>\n#endif\n"
    text = subprocess.run([cc, "-E", "-P", "-x", "c", "-"], input=source, text=True, check=True, stdout=subprocess.PIPE).stdout
    attribute = re.compile(r"__attribute__\s*\(\((?:[^()]|\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\))*\)\)")
    return attribute.sub("", text)


def data_names(text):
    """Variables that mpi.h declares: predefined handles of Open MPI, MPI_UNWEIGHTED of MPICH, ..."""
    return sorted(set(re.findall(r"\bextern\s[^;()]*?\b((?:ompi_|MPI_|MPIR_|MPICH_)\w+)\s*(?:\[\d*\])?\s*;", text)))


def prototypes(cc):
    """Name -> Func for every MPI_ and MPIX_ function of cc's headers, hidden ones of Open MPI included."""
    text = header(cc)
    if "ompi_communicator_t" in text:
        text += REMOVED
    if "struct MPI_ABI_Comm" in text:
        text += ABI_MORE
    funcs = {}
    for statement in text.split(";"):
        statement = " ".join(statement.split())
        m = re.match(r"^(?:extern )?((?:int|double|MPI_\w+)) (MPIX?_\w+) ?\((.*)\)$", statement)
        if m:
            name = row_name(m.group(2))
            funcs.setdefault(name, Func(m.group(1), name, m.group(3)))
    if len(funcs) < 300:
        raise SystemExit(f"mpi_h: only {len(funcs)} prototypes found in mpi.h of {cc}; the parser needs a look")
    return funcs
