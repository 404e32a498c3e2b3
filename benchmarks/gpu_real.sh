# Rows of real_data.py, auto.py and unseen_labels.py on a lent GPU machine, after gpu_setup.sh has had all folders.
# usage: bash benchmarks/gpu_real.sh start | wait SECONDS
# `start` begins groups of rows that go on between calls, each on cores of its own: `auto` on two cores that nothing
# else uses and without the GPU; networks share the GPU. `wait` brings all results so far back as $OUT/results.tgz.
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
    --results $R >> $R/unseen-$1.log 2>&1
}
group() { # NAME CORES COMMANDS
  echo "$3" > $R/$1.sh
  setsid taskset -c $2 bash -c ". $CODE/benchmarks/gpu_real.sh functions; SECONDS=0; . $R/$1.sh; echo $1 done after \$SECONDS s >> $R/groups.log" \
    > $R/$1.out 2>&1 < /dev/null &
}
case $1 in
functions) ;;
start)
  mkdir -p $R
  group auto-eurlex 0,1 "auto eurlex57k; unseen eurlex57k stack/cpu"
  group auto-tibkat 2,3 "auto tibkat-gnd; unseen tibkat-gnd stack/cpu"
  group eurlex 4-6 "real eurlex57k stack/gpu 3"
  group tibkat 7-9 "real tibkat-gnd stack/gpu 3"
  group yso 10-12 "real yso-finna-en stack/gpu 3"
  group small 13 "real cooking-stackexchange stack/gpu 1; real debtags stack/gpu,lightxml,aplc-xlnet,xbert,xr-transformer,treaderxml/transformer,attentionxml 1"
  group cpu 14,15 "CUDA_VISIBLE_DEVICES= real yso-finna-en stack/cpu,linear 2"
  ;;
wait)
  until [ $SECONDS -ge $2 ] || [ "$(cat $R/groups.log 2>/dev/null | wc -l)" -ge 7 ]; do sleep 1; done
  tar -C $R -czf $OUT/results.tgz .
  tail -n 4 $R/*.log
  for out in $R/*.out; do [ -s $out ] && { echo "== $out"; tail -n 5 $out; }; done
  uptime
  nvidia-smi --query-gpu=utilization.gpu,memory.used --format=csv,noheader
  ;;
esac
