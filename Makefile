# PACX: one Makefile, everything made goes to build/ (or build/san-.../ with SAN=).
#
#   make                 libraries, daemons, pacxrun, pacxctl
#   make check           build and run every test that fits CI's time
#   make check-long      the long forms: big messages, all ScaLAPACK tests, Global Arrays, coarrays and h5py, 100,000 messages per vendor pair
#   make check-mpis      the MPI test programs in worlds of Debian 12, 13 and unstable: private roots are made and built in (root, debootstrap)
#   make check-unlike    what runs on i386, s390x and aarch64 alone and MPI programs on worlds with such sites (qemu), made from Debian's packages in build/unlike
#   make bench           figures of the relay, each next to a reference measured in the same run; PART=onesite: collectives and messages within a site
#   make bench-link      figures of links, loopback and emulated wide area (root); PART=3 or 1,2: some of them (tests/bench/link.py)
#   make bench-wan       collective operations over an emulated wide area: ours, flat jobs and the limit (root); PART=2x8,4x4,4x4up,2x4gw,tables (tests/bench/wan.py)
#   make bench-scale     memory and constructors of worlds of up to 64 sites with 16,384 ranks each, on the real code without processes
#   make bench-codec     ratio and speed of the codecs on kinds of data, and of prediction on what iterative programs send,
#                        simulated ones and recordings of real ones (pacxrun --record)
#   make bench-predict   time of whole exchanges over an emulated 10 Mbit/s and 35 ms, and 1 Gbit/s, without and with compression; PART=melt: of one kind
#   make lint            clang-format, clang-tidy, cppcheck, floors, documents against code, man pages
#   make fuzz T=frame SECS=60   one fuzz target (frame hello world preamble parser hostfile codec predict via probing tls link) under clang's
#                        sanitizers, for so long, or with RUNS=10000000 so many inputs
#   make install PREFIX=/usr/local DESTDIR=
#   make clean
#
# Variables: CC=gcc|clang  SAN=address,undefined|thread  WERROR=1  V=1 shows commands
#   MPI="/opt/openmpi/bin/mpicc mpicc.mpich"   the compiler commands of the MPIs to build for, one library and one daemon each; the
#                        default is each distinct MPI found in PATH as mpicc.openmpi, mpicc.mpich, mpicc, mpicc_abi
#   VENDORS="openmpi mpich"   the same for Debian's, by their names

CC      = gcc
PREFIX  = /usr/local
DESTDIR =
SAN     =
WERROR  =
V       =
OPT     = -O2
SECS    = 60
T       = frame

VERSION := $(shell sed -n "s/^\#define PACX_VERSION_[MP][AI][JNT][A-Z]* //p" include/pacx.h | paste -sd.)
MPI     = $(addprefix mpicc.,$(VENDORS))
VENDORS =
# NAME=COMMAND=IDENTITY of each MPI, see scripts/mpi_identity.py.
MPIS   := $(shell scripts/mpi_identity.py names $(MPI))
part    = $(word $(2),$(subst =, ,$(filter $(1)=%,$(MPIS))))
mpicc   = $(call part,$(1),2)
# (The standard ABI has no Fortran yet.)
mpif90  = $(if $(filter abi-%,$(call part,$(1),3)),,$(if $(findstring /,$(mpicc)),$(wildcard $(dir $(mpicc))mpif90),$(subst mpicc,mpif90,$(mpicc))))
BUILDS := $(foreach m,$(MPIS),$(firstword $(subst =, ,$(m))))
comma   := ,
B       = build$(if $(SAN),/san-$(subst $(comma),-,$(SAN)))
Q       = $(if $(V),,@)

WARN    = -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla $(if $(WERROR),-Werror)
SANFLAGS = $(if $(SAN),-fsanitize=$(SAN) -fno-omit-frame-pointer -fno-sanitize-recover=undefined)
# -iquote, not -I: err.h, wait.h and endian.h are also names of libc's.
ROOMS   = $(patsubst %/,%,$(sort $(dir $(wildcard libpacx/*/*.c daemon/*/*.c))))
INC     = -iquote libpacx $(addprefix -iquote ,$(ROOMS)) -iquote tests -iquote tests/fuzz
CFLAGS  = -std=c11 -ffp-contract=off -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -DPX_VERSION_TEXT='"$(VERSION)"' -g $(OPT) -fPIC $(WARN) $(SANFLAGS) $(INC) -MMD -MP
# MPICH's MPI_STATUSES_IGNORE looks like an array of length 1 to gcc. What MPI has deprecated is to work still: in the library and in its tests.
OLD     = -Wno-deprecated-declarations
VFLAGS  = $(CFLAGS) $(OLD) $(if $(findstring clang,$(CC)),,-Wno-stringop-overflow -Wno-array-bounds)
UV      = $(shell pkg-config --libs libuv)
YAML    = $(shell pkg-config --libs yaml-0.1)
SSL     = $(shell pkg-config --libs libssl libcrypto)
CODECS  = $(shell pkg-config --libs zlib liblz4 libzstd) -lzfp -lm

# The sanitizer's runtime comes with the test programs, behind the preloaded library; the vendors leak by design.
export ASAN_OPTIONS = verify_asan_link_order=0:detect_leaks=0:detect_odr_violation=0
export UBSAN_OPTIONS = print_stacktrace=1
export TSAN_OPTIONS = ignore_noninstrumented_modules=1:suppressions=$(CURDIR)/tests/tsan.supp
export OMPI_CC = $(CC)
export MPICH_CC = $(CC)
export OMPI_ALLOW_RUN_AS_ROOT = 1
export OMPI_ALLOW_RUN_AS_ROOT_CONFIRM = 1
# Open MPI 5's tcp says at each start on some machines that it reaches nobody; all that is run here shares memory.
ifneq ($(findstring =openmpi-5,$(MPIS)),)
export OMPI_MCA_btl = ^tcp
endif

BASE   = $(wildcard libpacx/base/*.c)
WIRE   = $(wildcard libpacx/wire/*.c)
LIB    = $(filter-out $(BASE) $(WIRE),$(wildcard libpacx/*/*.c))
# What pacxd shares with libpacx beyond the two lowest floors.
ATTACH = libpacx/native/vendor.c libpacx/native/attach_roles.c libpacx/native/yield_hook.c
HOSTS  = $(wildcard daemon/hostfile/*.c)
# in: files of a daemon's room. What the programs share is named one by one.
in     = $(patsubst %,daemon/$(1)/%.c,$(2))
RUN    = $(filter-out $(APART),$(wildcard daemon/pacxrun/*.c daemon/base/*.c)) $(call in,net,key)
APART  = $(call in,pacxrun,pacxlabel pacxrank pump)
DISPATCH = $(call in,pacxd,pacxd_dispatch relay relay_end relay_who) $(call in,net,door crowd quiet proof key)
CTL    = $(wildcard daemon/pacxctl/*.c) $(call in,base,rundir json mpis) $(call in,net,tls tls_psk key proof via via_command) $(TRYING)
# What tries compression on recorded payload.
TRYING = $(call in,link,recording history link_seg auto_codec codec predict seg_code forecast lossy residual weigh learn)
PACXD  = $(filter-out $(DISPATCH),$(wildcard daemon/pacxd/*.c)) $(wildcard daemon/base/*.c daemon/net/*.c daemon/link/*.c)

plain   = $(patsubst %.c,$(B)/obj/plain/%.o,$(1))
vendored = $(patsubst %.c,$(B)/obj/$(2)/%.o,$(1))

PROGRAMS = $(B)/bin/pacxrun $(B)/bin/pacxd $(B)/bin/pacxctl $(B)/lib/pacx/pacxlabel $(B)/lib/pacx/pacxrank
all: $(PROGRAMS) $(foreach v,$(BUILDS),$(B)/lib/libpacx-$(v).so $(B)/lib/pacx/pacxd-$(v) $(B)/lib/pacx/$(v).mpi)
	$(if $(BUILDS),,$(error no MPI found: give MPI=/path/to/mpicc, install openmpi-bin libopenmpi-dev or mpich libmpich-dev, or run scripts/setup))
	@scripts/mpi_links $(B)/lib $(BUILDS)

help:
	@sed -n '2,/^$$/s/^# \{0,1\}//p' Makefile

# Its loops are to become vector operations.
$(B)/obj/%/daemon/link/learn.o: OPT = -O3

$(B)/obj/plain/%.o: %.c
	@mkdir -p $(@D)
	$(if $(V),,@echo "  CC      $<")
	$(Q)$(CC) $(CFLAGS) -c $< -o $@

# A sanitizer's runtime asks our dlsym for libc's functions before anything instrumented may run.
$(B)/obj/plain/libpacx/base/loaded.o $(foreach v,$(BUILDS),$(B)/obj/$(v)/libpacx/start/dlsym_hook.o): SANFLAGS =

$(B)/bin/pacxrun: $(call plain,$(RUN) $(HOSTS) $(BASE) $(WIRE))
$(B)/bin/pacxctl: $(call plain,$(CTL) $(HOSTS) $(BASE) $(WIRE))
$(B)/bin/pacxd: $(call plain,$(DISPATCH) $(BASE) $(WIRE))
$(B)/lib/pacx/pacxlabel: $(call plain,$(call in,pacxrun,pacxlabel child) $(call in,base,write_all) $(BASE))
$(B)/lib/pacx/pacxrank: $(call plain,$(call in,pacxrun,pacxrank pump) $(call in,base,record write_all))
$(PROGRAMS):
	@mkdir -p $(@D)
	$(if $(V),,@echo "  LINK    $@")
	$(Q)$(CC) $(SANFLAGS) -o $@ $^ $(UV) $(YAML) $(if $(filter %/pacxctl,$@),$(CODECS)) $(SSL) -ldl -pthread

# One library and one daemon per MPI. gen/NAME holds the table of native functions and the wrappers, and what is known of the MPI.
# MPICH and its relatives share an ABI, but not the name of their library: what is built for one needs none by name, and
# takes that of the program. Open MPI's handles are addresses in its library.
needs   = -Wl,--$(if $(filter openmpi-%,$(call part,$(1),3)),no-)as-needed
# Programs of tests/mpi that run one after the other in one job of the matrix (tests/mpi/suite.c). ALONE: those that begin or end MPI themselves or look at it
# before or after, that end otherwise than well, that want arguments, or of which PACX says something.
SUITE = $(filter-out $(ALONE),$(patsubst tests/mpi/%.c,%,$(wildcard tests/mpi/*.c)))
DEFINE_suite = '-DSUITE=$(foreach t,$(SUITE),X($(t)))'
ALONE = suite abort accuracy attrs fatal files_local get_status handles initfin pacxh partition ports programs refused rma_busy spawn \
	stdin_rank0 threads threads_flood threads_make
define vendor_rules
$(B)/gen/$(1)/which: FORCE
	@mkdir -p $$(@D)
	@echo '$(filter $(1)=%,$(MPIS))' | cmp -s - $$@ || echo '$(filter $(1)=%,$(MPIS))' >$$@

$(B)/gen/$(1)/bind.c: scripts/gen_bindings.py scripts/mpi_h.py scripts/mpi_identity.py libpacx/mpi.api $(B)/gen/$(1)/which
	@mkdir -p $$(@D)
	$$(if $$(V),,@echo "  GEN     $$@")
	$$(Q)python3 scripts/gen_bindings.py $(mpicc) $$(@D)

$(B)/lib/pacx/$(1).mpi: $(B)/gen/$(1)/bind.c
	@mkdir -p $$(@D)
	@rm -f $$@ && cp $(B)/gen/$(1)/mpi $$@

$(B)/obj/$(1)/%.o: %.c $(B)/gen/$(1)/bind.c
	@mkdir -p $$(@D)
	$$(if $$(V),,@echo "  CC($(1)) $$<")
	$$(Q)$(mpicc) $$(VFLAGS) -iquote $(B)/gen/$(1) -c $$< -o $$@

$(B)/obj/$(1)/bind.o: $(B)/gen/$(1)/bind.c
	@mkdir -p $$(@D)
	$$(if $$(V),,@echo "  CC($(1)) $$<")
	$$(Q)$(mpicc) $$(VFLAGS) -iquote $(B)/gen/$(1) -c $$< -o $$@

$(B)/lib/libpacx-$(1).so: $$(call vendored,$(LIB),$(1)) $(B)/obj/$(1)/bind.o $$(call plain,$(BASE) $(WIRE))
	@mkdir -p $$(@D)
	$$(if $$(V),,@echo "  LINK    $$@")
	$$(Q)rm -f $$@ && $(mpicc) $$(SANFLAGS) $(needs) -shared -Wl,--version-script=$(B)/gen/$(1)/libpacx.map -Wl,-soname,libpacx-$(1).so -o $$@ $$^ -ldl -lm -pthread

$(B)/lib/pacx/pacxd-$(1): $$(call vendored,$(PACXD) $(ATTACH),$(1)) $$(call plain,$(HOSTS) $(BASE) $(WIRE))
	@mkdir -p $$(@D)
	$$(if $$(V),,@echo "  LINK    $$@")
	$$(Q)rm -f $$@ && $(mpicc) $$(SANFLAGS) $(needs) -rdynamic -o $$@ $$^ $$(UV) $$(YAML) $$(CODECS) $$(SSL) -ldl -pthread

$(B)/$(1)/tests/obj/%.o: tests/mpi/%.c $(wildcard tests/mpi/*.h)
	@mkdir -p $$(@D)
	$$(if $$(V),,@echo "  MPICC($(1)) $$<")
	$$(Q)$(mpicc) $$(SANFLAGS) -std=c11 -D_GNU_SOURCE -g -O1 -Wall $(OLD) $$(DEFINE_$$*) -c -o $$@ $$<
$(B)/$(1)/tests/%: $(B)/$(1)/tests/obj/%.o
	$$(Q)$(mpicc) $$(SANFLAGS) -o $$@ $$< -lm -pthread
$(B)/$(1)/tests/obj/%.main.o: $(B)/$(1)/tests/obj/%.o
	$$(Q)objcopy --redefine-sym main=main_$$* --keep-global-symbol=main_$$* $$< $$@
$(B)/$(1)/tests/suite: $(B)/$(1)/tests/obj/suite.o $(SUITE:%=$(B)/$(1)/tests/obj/%.main.o)
	$$(Q)$(mpicc) $$(SANFLAGS) -o $$@ $$^ -lm -pthread

$(B)/$(1)/tests/%: tests/mpi/%.f90 tests/mpi/f_body.inc tests/mpi/f_files.inc
	@mkdir -p $$(@D)/mod/$$*
	$$(if $$(V),,@echo "  MPIFORT($(1)) $$<")
	$$(Q)$(mpif90) $$(SANFLAGS) -g -O1 -w -fallow-argument-mismatch -J $$(@D)/mod/$$* -o $$@ $$<

$(B)/$(1)/bench/%: tests/bench/%.c tests/bench/kinds.h tests/bench/series.h
	@mkdir -p $$(@D)
	$$(Q)$(mpicc) -std=c11 -D_GNU_SOURCE -O2 -o $$@ $$< -ldl -lm

MPI_TESTS += $$(patsubst tests/mpi/%.c,$(B)/$(1)/tests/%,$$(wildcard tests/mpi/*.c)) $(if $(mpif90),$$(patsubst tests/mpi/%.f90,$(B)/$(1)/tests/%,$$(wildcard tests/mpi/*.f90)))
BENCHES += $(addprefix $(B)/$(1)/bench/,latency overhead onesite rate hop)
LINK_BENCHES += $(B)/$(1)/bench/link
WIDE_BENCHES += $(B)/$(1)/bench/wide
endef
$(foreach v,$(BUILDS),$(eval $(call vendor_rules,$(v))))

# Tests without MPI: unit tests, decoders, replay of the fuzz corpora.
UNIT   = $(patsubst tests/unit/%.c,$(B)/tests/%,$(wildcard tests/unit/*.c))
FUZZ   = $(filter-out replay,$(patsubst tests/fuzz/%.c,%,$(wildcard tests/fuzz/*.c)))
FLOORS = $(call plain,$(HOSTS) $(BASE) $(WIRE))
# Daemon files that a test (T_test, fuzz target T) needs beyond the floors.
USES_codec = $(call in,link,codec)
USES_auto_codec = $(call in,link,codec auto_codec)
USES_via = $(call in,net,via via_command)
USES_status = $(call in,pacxd,status) $(call in,base,rundir)
USES_key = $(call in,net,key)
USES_tls = $(call in,net,tls tls_psk key proof)
USES_tls_handshake = $(USES_tls)
USES_proof = $(call in,net,proof key)
USES_crowd = $(call in,net,crowd)
USES_ranks = libpacx/p2p/ranks.c
USES_place = libpacx/comm/place.c
USES_rate = $(call in,link,link_rate)
USES_outq = $(call in,link,outq link_seg)
USES_lossy = $(call in,link,lossy)
USES_words = $(call in,link,words)
USES_vain = $(call in,link,vain)
USES_recording = $(call in,link,recording)
USES_predict = $(call in,link,predict seg_code codec forecast lossy residual weigh learn)
USES_forecast = $(USES_predict)
USES_history = $(call in,link,history link_seg)
USES_study = $(call in,link,study learn predict history link_seg)
USES_link = $(call in,link,link recording link_in link_back link_rate link_seg outq stream_life auto_codec codec \
	seg_in seg_code predict forecast history lossy residual weigh learn study) \
	$(call in,pacxd,in_send out_flow out_notes) $(call in,net,tcp_state frame_check) $(call in,base,pages)
$(foreach t,codec auto_codec predict forecast rate lossy words vain recording history study via status key tls proof crowd outq ranks place tls_handshake,$(eval $(addprefix $(B)/tests/,$(t)_test replay_$(t)): $(call plain,$(USES_$(t)))))

$(B)/tests/%: $(B)/obj/plain/tests/unit/%.o $(FLOORS)
	@mkdir -p $(@D)
	$(Q)$(CC) $(SANFLAGS) -o $@ $^ $(YAML) $(CODECS) $(UV) $(SSL) -lm -pthread
$(B)/tests/decode: $(B)/obj/plain/tests/wire/decode.o $(call plain,$(USES_predict)) $(FLOORS)
	@mkdir -p $(@D)
	$(Q)$(CC) $(SANFLAGS) -o $@ $^ $(YAML) $(CODECS) -pthread
$(B)/tests/replay_%: $(B)/obj/plain/tests/fuzz/%.o $(B)/obj/plain/tests/fuzz/replay.o $(FLOORS)
	@mkdir -p $(@D)
	$(Q)$(CC) $(SANFLAGS) -o $@ $^ $(YAML) $(CODECS) $(SSL) -pthread
# The fuzz target of the links is built like a daemon, on a native MPI of its own.
V1 = $(firstword $(BUILDS))
$(B)/tests/replay_link: $(call vendored,tests/fuzz/link.c $(USES_link),$(V1)) $(B)/obj/plain/tests/fuzz/replay.o $(FLOORS)
	@mkdir -p $(@D)
	$(Q)$(call mpicc,$(V1)) $(SANFLAGS) -o $@ $^ $(YAML) $(CODECS) $(UV) -pthread
$(B)/bench/raw%: tests/bench/raw%.c
	@mkdir -p $(@D)
	$(Q)$(CC) -std=c11 -D_GNU_SOURCE -O2 -o $@ $<

$(B)/bench/codec: $(B)/obj/plain/tests/bench/codec.o $(call plain,daemon/link/codec.c)
	@mkdir -p $(@D)
	$(Q)$(CC) $(SANFLAGS) -o $@ $^ $(CODECS) -lm

$(B)/bench/scale: $(call vendored,tests/bench/scale.c $(filter-out libpacx/start/% libpacx/fortran/%,$(LIB)) $(USES_link),$(V1)) $(FLOORS)
	@mkdir -p $(@D)
	$(Q)$(call mpicc,$(V1)) $(SANFLAGS) -o $@ $^ $(YAML) $(CODECS) $(UV) -ldl -lm -pthread

$(B)/bench/convert: $(B)/obj/plain/tests/bench/convert.o $(call plain,$(BASE) $(WIRE))
	@mkdir -p $(@D)
	$(Q)$(CC) $(SANFLAGS) -o $@ $^ -lm

$(B)/bench/predict: $(B)/obj/plain/tests/bench/predict.o $(call plain,$(call in,pacxctl,replay) $(TRYING) $(FLOORS))
	@mkdir -p $(@D)
	$(Q)$(CC) $(SANFLAGS) -o $@ $^ $(YAML) $(CODECS) -lm -pthread

# The emulated wide area of scripts/wanlab, a tool of its own.
LAB = $(B)/lab/wanem
$(LAB): tests/lab/wanem.c tests/lab/wanem_params.c tests/lab/wanem_tun.c $(wildcard tests/lab/*.h)
	@mkdir -p $(@D)
	$(if $(V),,@echo "  LINK    $@")
	$(Q)$(CC) -std=c11 -D_GNU_SOURCE -g $(OPT) $(WARN) $(SANFLAGS) -o $@ $(filter %.c,$^)

NOMPI_ITEMS = $(UNIT) "tests/wire/check_vectors.py $(B)/tests/decode" "tests/wire/convert.py --check" $(foreach t,$(FUZZ),"$(B)/tests/replay_$(t) tests/fuzz/corpus/$(t)")
DAEMON_TESTS = $(sort $(wildcard tests/daemon/*_test.sh tests/daemon/*_test.py))
# Two at a time: they wait for outages and deadlines more than they count. What fills the machine by itself runs alone.
DAEMON_ITEMS = $(patsubst %,"@800 %",$(DAEMON_TESTS))
APP_ITEMS = $(patsubst %,"@300! %",$(sort $(wildcard tests/apps/*_test.sh)))
LONG_ITEMS = $(patsubst %,"@3600 %",$(sort $(wildcard tests/apps/*_long.sh tests/mpi/*_long.sh tests/daemon/*_long.py)))

check-build: all $(UNIT) $(B)/tests/decode $(foreach t,$(FUZZ),$(B)/tests/replay_$(t)) $(MPI_TESTS) $(LAB) $(B)/bench/scale
# Under a sanitizer: what it can say something about. MPICH's UCX does not run under the thread sanitizer, plain neither.
FULL_ITEMS = $(NOMPI_ITEMS) "@60! $(B)/bench/scale" "scripts/check_api.py --build $(B)" scripts/check_layers.sh $(DAEMON_ITEMS) \
	"@120! tests/lab/wanlab_test.py" "@1500! tests/mpi/matrix.py --build $(B)" $(APP_ITEMS)
THREAD_ITEMS = $(UNIT) "@3600 tests/mpi/matrix.py --build $(B) --deadline 300 --only 2+2:openmpi+openmpi --only 2+2:openmpi+openmpi:thread"
ADDRESS_ITEMS = $(NOMPI_ITEMS) $(patsubst %,"@800 %",$(filter-out %kill_test.py %ssh_test.sh %resume_test.py %ways_test.py %memory_test.py %security_test.py,$(DAEMON_TESTS))) \
	"@1500 tests/mpi/matrix.py --build $(B) --only 2+1+2:openmpi+mpich+openmpi"
CHECK_ITEMS = $(if $(SAN),$(if $(findstring thread,$(SAN)),$(THREAD_ITEMS),$(ADDRESS_ITEMS)),$(FULL_ITEMS))

check: check-build
	@PACX_BUILD=$(B) tests/run -t 60 -j $(if $(SAN),1,2) $(CHECK_ITEMS)
check-fast: $(UNIT) $(B)/tests/decode $(foreach t,$(FUZZ),$(B)/tests/replay_$(t))
	@tests/run -j 2 $(NOMPI_ITEMS)
mpi-tests: $(MPI_TESTS)
# Worlds of several versions of each MPI: minutes of downloads and builds, root, debootstrap. ROOTS: where the roots are kept.
ROOTS = build/roots
check-mpis: check-build
	@tests/run -t 14400 "tests/mpi/roots.py --roots $(ROOTS) --build $(B)"
# Sites of 32 bits, of the other byte order, of another long double, made from Debian's packages under $(B)/unlike (scripts/setup unlike installs the tools).
check-unlike: all
	@tests/run "@7200 tests/unlike/check.py --build $(B)"
check-long: check-build
	@PACX_BUILD=$(B) tests/run $(LONG_ITEMS)

bench: all $(BENCHES) $(B)/bench/rawtcp $(B)/bench/convert
	@tests/bench/bench.py --build $(B) --part "$(PART)"
	@$(if $(PART),,$(B)/bench/convert)

PART =
bench-link: all $(LINK_BENCHES) $(B)/bench/rawtcp $(B)/bench/rawlink $(LAB)
	@tests/bench/link.py --build $(B) --part "$(PART)"

$(B)/bench/nap.so: tests/bench/nap.c
	@mkdir -p $(@D)
	$(Q)$(CC) -std=c11 -O2 -fPIC -shared -o $@ $< -ldl

bench-wan: all $(WIDE_BENCHES) $(B)/bench/nap.so $(LAB)
	@tests/bench/wan.py --build $(B) --part "$(PART)"

bench-where: all $(BENCHES)
	@tests/bench/where.py --build $(B)

bench-scale: $(B)/bench/scale
	@$(B)/bench/scale

# RECORDINGS: where those of real programs are kept once they are made.
RECORDINGS = $(B)/recordings
bench-codec: all $(B)/bench/codec $(B)/bench/predict $(B)/$(V1)/bench/fields
	@$(B)/bench/codec
	@$(B)/bench/predict
	@files=$$(tests/bench/recordings.py --build $(B) --fields $(B)/$(V1)/bench/fields $(RECORDINGS)) && $(B)/bench/predict $$files

bench-predict: all $(B)/$(V1)/bench/carry
	@tests/bench/thin.py --build $(B) --carry $(B)/$(V1)/bench/carry --part "$(PART)"

# The links with small segments, and no coverage of loops over data: five times as many inputs a second.
FUZZ_link = -DPX_SEG_MIN=65536u -DPX_SEG_MAX=131072u -fsanitize-coverage-ignorelist=tests/fuzz/link.loops

LEN = 4096

fuzz:
	@mkdir -p build/fuzz/corpus-$(T)
	$(Q)$(if $(filter link,$(T)),OMPI_CC=clang MPICH_CC=clang $(call mpicc,$(V1)) -iquote build/gen/$(V1),clang) -std=c11 -D_GNU_SOURCE -g -O1 $(INC) \
		-fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all $(FUZZ_$(T)) -o build/fuzz/$(T) \
		tests/fuzz/$(T).c $(USES_$(T)) $(HOSTS) $(BASE) $(WIRE) $(YAML) $(CODECS) $(SSL) $(UV)
	build/fuzz/$(T) $(if $(RUNS),-runs=$(RUNS),-max_total_time=$(SECS)) -max_len=$(LEN) -artifact_prefix=build/fuzz/ build/fuzz/corpus-$(T) tests/fuzz/corpus/$(T)

lint: all
	@scripts/lint $(B)

MAN1 = $(wildcard daemon/*/*.1)
MAN5 = $(wildcard hostfiles/*.5)
MAN8 = $(wildcard daemon/*/*.8)
install: all
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/lib/pacx $(DESTDIR)$(PREFIX)/share/man/man1 \
		$(DESTDIR)$(PREFIX)/share/man/man3 $(DESTDIR)$(PREFIX)/share/man/man5 $(DESTDIR)$(PREFIX)/share/man/man8 \
		$(DESTDIR)$(PREFIX)/share/doc/pacx/hostfiles $(DESTDIR)$(PREFIX)/include $(DESTDIR)$(PREFIX)/lib/pkgconfig
	install $(B)/bin/pacxrun $(B)/bin/pacxd $(B)/bin/pacxctl $(DESTDIR)$(PREFIX)/bin
	cp -P --remove-destination $(B)/lib/libpacx-*.so $(DESTDIR)$(PREFIX)/lib
	cp -P --remove-destination $(B)/lib/pacx/* $(DESTDIR)$(PREFIX)/lib/pacx
	install -m 644 $(MAN1) $(DESTDIR)$(PREFIX)/share/man/man1
	install -m 644 include/pacx.3 $(DESTDIR)$(PREFIX)/share/man/man3
	install -m 644 include/pacx.h $(DESTDIR)$(PREFIX)/include
	sed 's|@PREFIX@|$(PREFIX)|; s|@VERSION@|$(VERSION)|' include/pacx.pc.in >$(DESTDIR)$(PREFIX)/lib/pkgconfig/pacx.pc
	install -m 644 $(MAN5) $(DESTDIR)$(PREFIX)/share/man/man5
	install -m 644 $(MAN8) $(DESTDIR)$(PREFIX)/share/man/man8
	install -m 644 README.md LICENSE libpacx/COVERAGE.md libpacx/TOOLS.md $(wildcard daemon/*.md) $(DESTDIR)$(PREFIX)/share/doc/pacx
	install -m 644 $(wildcard hostfiles/*.yml hostfiles/*.pacx) $(DESTDIR)$(PREFIX)/share/doc/pacx/hostfiles

clean:
	rm -rf build

FORCE:
.PHONY: all help check check-build check-fast check-long check-mpis check-unlike mpi-tests bench bench-link bench-wan bench-codec bench-predict bench-scale bench-where fuzz lint install clean
.SECONDARY:
-include $(shell find $(B)/obj -name '*.d' 2>/dev/null)
