#!/bin/sh
# Two hosts of two ranks each, as network namespaces behind a bridge: a job trains on both. Then the link of one is taken away, and
# the ranks of both hosts have to end within CLNET_DIST_TIMEOUT (12 unless set), with a line that names a lost rank of the other.
#   tests/dist/two_hosts.sh CLNET_TRAIN
# Ends with 77, and says so, where no namespaces may be made, or Open MPI or its module is missing.
set -u
program=$1
deadline=${CLNET_DIST_TIMEOUT:-12}
skip() {
  echo "skipped: $*"
  exit 77
}
fail() {
  echo "failed: $*"
  [ ! -f "$work/output" ] || cat "$work/output"
  exit 1
}
for tool in ip unshare mpirun.openmpi python3; do
  command -v $tool >/dev/null || skip "$tool is not installed (Debian's iproute2, util-linux, openmpi-bin, python3)"
done
[ -f "$(dirname "$program")/../clnet/clnet-mpi-openmpi.so" ] || skip "clnet was built without clnet-mpi-openmpi.so (Debian's libopenmpi-dev)"

first=clnet-$$-1 second=clnet-$$-2 switch=clnet-$$-switch
work=$(mktemp -d)
# Processes of a namespace end with the test, whatever they wait for.
clean() {
  for space in $first $second $switch; do
    for process in $(ip netns pids "$space" 2>/dev/null); do kill -9 "$process" 2>/dev/null; done
    ip netns delete "$space" 2>/dev/null
  done
  rm -rf "$work"
}
trap clean EXIT
ip netns add $switch 2>"$work/why" || skip "network namespaces cannot be made: $(cat "$work/why")"
ip -n $switch link add bridge type bridge 2>"$work/why" || skip "bridges cannot be made: $(cat "$work/why")"
ip -n $switch link set bridge up
number=1
for space in $first $second; do
  ip netns add "$space" &&
    ip -n "$space" link set lo up &&
    ip -n "$space" link add eth0 type veth peer name "port$number" netns $switch &&
    ip -n "$space" address add 10.213.7.$number/24 dev eth0 &&
    ip -n "$space" link set eth0 up &&
    ip -n $switch link set "port$number" master bridge up || fail "no network"
  number=$((number + 1))
done

# on HOST COMMAND...: as the shell of a host, which also has a name of its own. Open MPI calls it in the place of ssh.
cat >"$work/on" <<'END'
#!/bin/sh
host=$1
shift
exec ip netns exec "clnet-$MARK-${host##*.}" unshare -u sh -c "hostname host-${host##*.}; $*"
END
sed -i "s/\$MARK/$$/" "$work/on"
chmod +x "$work/on"
PYTHONPATH=$(dirname "$0") python3 -B -c 'import few_images, pathlib, sys; few_images.write_images(pathlib.Path(sys.argv[1]), 400, 40)' \
  "$work/data" || fail "no data"

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 CLNET_DIST_TIMEOUT="$deadline" POCL_MAX_PTHREAD_COUNT=1
# train EPOCHS: starts the job on the first host.
train() {
  "$work/on" 10.213.7.1 exec mpirun.openmpi --oversubscribe --bind-to none --host 10.213.7.1:2,10.213.7.2:2 \
    --mca plm_rsh_agent "$work/on" --mca mpi_yield_when_idle 1 --mca btl tcp,self --mca btl_tcp_if_include 10.213.7.0/24 \
    --mca oob_tcp_if_include 10.213.7.0/24 -x CLNET_DIST_TIMEOUT -x POCL_MAX_PTHREAD_COUNT -x CLNET_CACHE_DIR \
    "$program" --data "$work/data" --model mlp --batch-size 20 --epochs "$1" --log "$work/log-$1.jsonl" --save "$work/weights" \
    >"$work/output" 2>&1 </dev/null
}
# How many ranks of both hosts are there.
ranks() {
  for space in $first $second; do ip netns pids "$space"; done |
    while read -r process; do cat "/proc/$process/comm" 2>/dev/null; done | grep -c -x clnet-train
}

train 2 || fail "two hosts do not train"
echo "two hosts trained: $(tail -n 1 "$work/output")"

train 100000 &
for _ in $(seq 600); do
  [ ! -s "$work/log-100000.jsonl" ] || break
  sleep 0.1
done
[ "$(ranks)" = 4 ] || fail "$(ranks) ranks, not 4, are at work"
ip -n $switch link set port2 down
began=$(date +%s)
while [ "$(ranks)" != 0 ] && [ $(($(date +%s) - began)) -le $((deadline + 2)) ]; do sleep 0.1; done
took=$(($(date +%s) - began))
[ "$(ranks)" = 0 ] || fail "$(ranks) ranks are left after $took s"
# What the other host's ranks say cannot get here.
grep -q -E 'rank [23] on host-2 has been silent for [0-9]+ s, last heard ' "$work/output" || fail "no line names a lost rank"
echo "all ranks of both hosts ended $took s after a link was gone: $(grep -m 1 -o 'rank [23] on host-2 has been silent.*' "$work/output")"
