#!/bin/sh
# One job of several ranks under a launcher, and how it has to end.
#   run.sh openmpi|mpich RANKS PROGRAM WAY [SECONDS]   SECONDS: the longest that the job may take
# Ends with 77, and says so, where that MPI is not installed, or clnet was built without its module.
set -u
mpi=$1 ranks=$2 program=$3 way=$4 seconds=${5:-100}

skip() {
  echo "skipped: $*"
  exit 77
}
launcher=$(command -v "mpirun.$mpi") || skip "mpirun.$mpi is not installed (Debian's openmpi-bin, mpich)"
[ -f "$(dirname "$program")/../clnet/clnet-mpi-$mpi.so" ] || skip "clnet was built without clnet-mpi-$mpi.so (Debian's libopenmpi-dev, libmpich-dev)"

# Open MPI starts no more ranks than there are cores, and none as root, unless it is told to.
options=
if [ "$mpi" = openmpi ]; then
  # It binds each rank to a core, its threads, too.
  options="--oversubscribe --allow-run-as-root --bind-to none"
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
fi

# As a user who takes one for the other.
if [ "$way" = wrong-mpi ]; then
  [ "$mpi" = openmpi ] && CLNET_MPI=mpich || CLNET_MPI=openmpi
  [ -f "$(dirname "$program")/../clnet/clnet-mpi-$CLNET_MPI.so" ] || skip "clnet was built without clnet-mpi-$CLNET_MPI.so"
  export CLNET_MPI
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
# No other process has this argument, not even one that looks for the pattern.
began=$(date +%s)
mark=$$-$began pattern="$$[-]$began"
# shellcheck disable=SC2086  # a list of words
timeout -k 5 "$seconds" "$launcher" $options -n "$ranks" "$program" "$way" "$ranks" "$mark" </dev/null >"$log" 2>&1
status=$?
took=$(($(date +%s) - began))
cat "$log"
echo "$mpi, $ranks ranks, $way: ended with $status after $took s"

fail() {
  echo "failed: $*"
  exit 1
}
# lines NUMBER PATTERN: so many lines of the job have it.
lines() {
  found=$(grep -c -E "$2" "$log")
  [ "$found" = "$1" ] || fail "$found lines, not $1, have: $2"
}
others=$((ranks - 1))

# From when a rank was stopped or killed until all have ended. The launcher needs a moment.
gone=$(sed -n 's/^ends at //p' "$log")
[ -z "$gone" ] || [ $((began + took - gone)) -le $((CLNET_DIST_TIMEOUT + 2)) ] || fail "it ended $((began + took - gone)) s after the rank"
[ "$took" -lt "$seconds" ] || fail "it did not end within $seconds s"
case $way in
  collectives | cold | own-mpi | tensors | training | batch-norm | overlap | failed-run | resume | resume-sums | shard | shard-* | scatter | scatter-resume | devices | devices-* | shares)
    [ "$status" = 0 ] || fail "expected 0"
    lines "$ranks" '^rank [0-9]+: ok$'
    ;;
  *) [ "$status" != 0 ] || fail "expected a fault" ;;
esac
case $way in
  scatter-fails) lines "$ranks" '^error: sample 40: /data/40.png: cannot be read$' ;;
  unlike-shares) lines "$ranks" '^error: ranks disagree about shares: rank 0 has "1,1[,1]*", rank 1 has "3,1[,1]*"$' ;;
  device-fails)
    fault='train::fit: a device of rank 1 failed, which ends training on all ranks: [^:]+: the driver is gone'
    lines 1 "^error: $fault\$"
    lines "$others" "^error: rank 1 on [^ ]+: $fault; "
    ;;
  failed-run-alone) grep -q "rank 0 on [^ ]*: an evaluation failed, and other ranks have not brought what it adds" "$log" || fail "no rank says why" ;;
  unlike-models) lines "$ranks" '^error: ranks disagree about parameters and buffers' ;;
  disagree) lines "$ranks" '^error: ranks disagree about data: rank 0 has "fashion-mnist", rank 1 has "mnist"$' ;;
  stop) lines "$others" '^lost: rank 1 on [^ ]+ has been silent for [0-9]+ s, last heard [^;]+; rank [0-9]+ on [^ ]+ is in collective [34], all_reduce of 1000 f32$' ;;
  stop-first) lines "$others" '^lost: rank 0 on [^ ]+ has been silent for [0-9]+ s, last heard [^;]+; rank [0-9]+ on [^ ]+ is in collective [12], ' ;;
  leave) lines "$others" '^lost: rank 1 on [^ ]+ has ended its program before the others; rank [0-9]+ on [^ ]+ is in collective [12], ' ;;
  abort) lines "$ranks" '^lost: rank 1 on [^ ]+: the disk is full' ;;
  # The first rank that ends may take others with it.
  wrong-mpi) grep -q "^error: the launcher has started $ranks ranks, .* knows none: CLNET_MPI=$CLNET_MPI is" "$log" || fail "no rank says why" ;;
  own-mpi-alone) lines "$ranks" '^error: (Open MPI|MPICH): this program has initialised MPI without MPI_THREAD_SERIALIZED' ;;
  unlike) lines "$ranks" '^lost: (receiving 1000 bytes from rank [0-9]+: |rank [0-9]+ sent 1000 bytes where 2000 were expected: )' ;;
esac
# The launcher's signals take a moment.
for _ in 1 2 3 4 5 6 7 8 9 10; do
  left=$(grep -l -s -a -- "$pattern" /proc/[0-9]*/cmdline)
  [ -n "$left" ] || exit 0
  sleep 0.2
done
fail "processes are left: $left"
