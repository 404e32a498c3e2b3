# Rows of real_data.py and auto.py on a lent GPU machine, whose time is short: all at once.
# usage: . benchmarks/gpu_setup.sh FOLDER; bash benchmarks/gpu_real.sh start GROUP... | wait SECONDS GROUPS
# `start` copies the code and begins groups of rows that go on between calls, each on cores of its own, as soon as what
# they read has come: speed, auto-eurlex (p1), auto-tibkat (p2), eurlex, even-eurlex, small (p3), yso (p4), tibkat,
# even-tibkat (p5). `auto` runs on two cores that nothing else uses, without the GPU; networks share the GPU, once
# `speed`, which needs it alone, is done; rows on even ground wait until the stacks have begun. `wait` ends when so many
# GROUPS are done, or after so many seconds, and brings all results as $OUT/results.tgz, and the lists of the networks
# in stacks as $OUT/lists-<data>.tgz.
set -u
export STASH=/root/stash
export R=$STASH/res CODE=$STASH/code W=$STASH/work
export PYTHONPATH=$CODE/src:$STASH/py PYTHONUNBUFFERED=1 OMP_WAIT_POLICY=PASSIVE LD_LIBRARY_PATH=$STASH:${LD_LIBRARY_PATH:-}
export SHARED=$STASH/shared LONGTAIL_COMMIT=${LONGTAIL_COMMIT:-unknown}
real() { # DATA ROWS THREADS [OPTIONS]
  python3 -W ignore $CODE/benchmarks/real_data.py --data $1 --methods $2 --threads $3 --shared $SHARED \
    --results $R/real_data ${4:-} >> $R/real-$1.log 2>&1
}
auto() { # DATA
  CUDA_VISIBLE_DEVICES= python3 -W ignore $CODE/benchmarks/auto.py $1 --budget 10m --threads 2 --shared $SHARED \
    --results $R/auto > $R/auto-$1.log 2>&1
}
speed() { # the command in $STASH/speed.sh, if it came along
  [ ! -f $CODE/benchmarks/gpu_speed.sh ] || (cd $CODE && bash benchmarks/gpu_speed.sh) > $R/speed.log 2>&1
}
alone() { # waits until `speed` is done
  until grep -q '^speed ' $R/groups.log 2>/dev/null; do sleep 1; done
}
group() { # NAME CORES COMMANDS
  echo "$3" > $R/$1.sh
  setsid taskset -c $2 bash -c ". $CODE/benchmarks/gpu_real.sh functions; SECONDS=0; . $R/$1.sh; echo $1 done after \$SECONDS s >> $R/groups.log" \
    > $R/$1.out 2>&1 < /dev/null &
}
ALIKE=lightxml,aplc-xlnet,xbert,xr-transformer,treaderxml/transformer
begin() {
  case $1 in
  speed) group $1 0-2 "speed" ;;
  auto-eurlex) group $1 10,11 "auto eurlex57k" ;;
  auto-tibkat) group $1 12,13 "auto tibkat-gnd" ;;
  even-eurlex) group $1 14 "sleep 150; real eurlex57k $ALIKE 1" ;;
  even-tibkat) group $1 15 "sleep 300; real tibkat-gnd $ALIKE 1" ;;
  eurlex) group $1 0-2 "alone; real eurlex57k stack/gpu 3 '--work $W'" ;;
  tibkat) group $1 3-5 "real tibkat-gnd stack/gpu 3 '--work $W'" ;;
  yso) group $1 6-8 "real yso-finna-en stack/gpu 3 '--work $W'" ;;
  small) group $1 9 "alone; real cooking-stackexchange stack/gpu 1; real debtags $ALIKE,linear,knn,stack/gpu,attentionxml 1" ;;
  esac
}
case $1 in
functions) ;;
start)
  mkdir -p $R $W $CODE/benchmarks
  cp -r src $CODE/ && cp benchmarks/*.py benchmarks/*.sh $CODE/benchmarks/
  shift
  for name in "$@"; do begin $name; done
  ;;
wait)
  SECONDS=0
  until [ $SECONDS -ge $2 ] || [ "$(cat $R/groups.log 2>/dev/null | wc -l)" -ge $3 ]; do sleep 1; done
  tar -C $R -czf $OUT/results.tgz .
  for data in eurlex57k tibkat-gnd yso-finna-en; do
    [ ! -d $W/$data ] || (cd $W/$data && tar -czf $OUT/lists-$data.tgz $(ls -d stack-gpu-member-*.npz stack-gpu/member-[04]-fold-*-lists 2>/dev/null))
  done
  cat $R/groups.log
  tail -n 3 $R/*.log | cut -c 1-600
  for out in $R/*.out; do [ -s $out ] && { echo "== $out"; tail -n 5 $out; }; done
  uptime
  nvidia-smi --query-gpu=utilization.gpu,memory.used --format=csv,noheader
  ;;
esac
