# lines.sh: how the shell tests write start commands of their own; sites.py does it for those in Python.

mpmd() { # FLAVOUR: can its launcher start two programs as one job? That of Open MPI 5.0.7 dies of it.
	more=
	[ "$1" = openmpi ] && more="--oversubscribe --allow-run-as-root"
	"mpirun.$1" $more -np 1 true : -np 1 true </dev/null >/dev/null 2>&1
	[ $? -lt 128 ]
}

both() { # FLAVOUR: ranks and daemons behind mpirun, in two programs or in one
	if mpmd "$1"; then echo "-np {ranks} {app} : -np {daemons} {pacxd}"; else echo "-np {procs} {app}"; fi
}
