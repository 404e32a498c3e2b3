# Rows of real_data.py, auto.py and unseen_labels.py on a lent GPU machine, whose time is short: all at once.
# usage: . benchmarks/gpu_setup.sh FOLDER; bash benchmarks/gpu_real.sh start GROUP... | wait SECONDS GROUPS
# `start` copies the code and begins groups of rows that go on between calls, each on cores of its own, as soon as what
# they read has come: auto-eurlex, unseen-eurlex (p1), auto-tibkat, unseen-tibkat (p2), eurlex, small (p3), yso (p4),
# tibkat (p5). `auto` runs on two cores that nothing else uses, without the GPU; networks share the GPU.
# `wait` ends when so many GROUPS are done, or after so many seconds, and brings all results as $OUT/results.tgz.
set -u
export STASH=/root/stash
export R=$STASH/res CODE=$STASH/code
export PYTHONPATH=$CODE/src:$STASH/py PYTHONUNBUFFERED=1 OMP_WAIT_POLICY=PASSIVE LD_LIBRARY_PATH=$STASH:${LD_LIBRARY_PATH:-}
export SHARED=$STASH/shared LONGTAIL_COMMIT=${LONGTAIL_COMMIT:-unknown}
real() { # DATA ROWS THREADS
  python3 -W ignore $CODE/benchmarks/real_data.py --data $1 --methods $2 --threads $3 --shared $SHARED \
    --results $R/real_data >> $R/real-$1.log 2>&1
}
auto() { # DATA
  CUDA_VISIBLE_DEVICES= python3 -W ignore $CODE/benchmarks/auto.py $1 --budget 10m --threads 2 --shared $SHARED \
    --results $R/auto > $R/auto-$1.log 2>&1
}
unseen() { # DATA METHOD
  CUDA_VISIBLE_DEVICES= python3 -W ignore $CODE/benchmarks/unseen_labels.py --data $SHARED/data --only $1 --method $2 \
    --parts unseen --threads 2 --results $R/unseen-$1 >> $R/unseen-$1.log 2>&1
}
group() { # NAME CORES COMMANDS
  echo "$3" > $R/$1.sh
  setsid taskset -c $2 bash -c ". $CODE/benchmarks/gpu_real.sh functions; SECONDS=0; . $R/$1.sh; echo $1 done after \$SECONDS s >> $R/groups.log" \
    > $R/$1.out 2>&1 < /dev/null &
}
ALIKE=linear,knn,lightxml,aplc-xlnet,xbert,xr-transformer,treaderxml/transformer
begin() {
  case $1 in
  auto-eurlex) group $1 0,1 "auto eurlex57k; real eurlex57k stack/cpu 2" ;;
  auto-tibkat) group $1 2,3 "auto tibkat-gnd; CUDA_VISIBLE_DEVICES= real yso-finna-en linear,stack/cpu 2" ;;
  unseen-eurlex) group $1 4,5 "unseen eurlex57k stack/cpu" ;;
  unseen-tibkat) group $1 6,7 "unseen tibkat-gnd stack/cpu" ;;
  eurlex) group $1 8,9 "real eurlex57k stack/gpu 2" ;;
  yso) group $1 10,11 "real yso-finna-en stack/gpu 2" ;;
  tibkat) group $1 12-14 "real tibkat-gnd stack/gpu 3" ;;
  small) group $1 15 "real cooking-stackexchange stack/gpu 1; real debtags stack/gpu,$ALIKE,attentionxml 1" ;;
  esac
}
case $1 in
functions) ;;
start)
  mkdir -p $R $CODE/benchmarks $R/unseen-eurlex57k $R/unseen-tibkat-gnd
  [ -d $CODE/src ] || { cp -r src $CODE/ && cp benchmarks/*.py benchmarks/*.sh $CODE/benchmarks/; }
  shift
  for name in "$@"; do begin $name; done
  ;;
wait)
  SECONDS=0
  until [ $SECONDS -ge $2 ] || [ "$(cat $R/groups.log 2>/dev/null | wc -l)" -ge $3 ]; do sleep 1; done
  tar -C $R -czf $OUT/results.tgz .
  cat $R/groups.log
  tail -n 3 $R/*.log | cut -c 1-600
  for out in $R/*.out; do [ -s $out ] && { echo "== $out"; tail -n 5 $out; }; done
  uptime
  nvidia-smi --query-gpu=utilization.gpu,memory.used --format=csv,noheader
  ;;
esac
