# Networks of a stack on a lent GPU machine, each in a process of its own, all at once (see network_lists.py).
# usage: . benchmarks/gpu_setup.sh FOLDER; bash benchmarks/gpu_lists.sh start | wait SECONDS
set -u
export STASH=/root/stash
R=$STASH/lists CODE=$STASH/code
export PYTHONPATH=$CODE/src:$STASH/py PYTHONUNBUFFERED=1 OMP_NUM_THREADS=6
network() { # DATA CORES OPTIONS...
  local data=$1 cores=$2
  shift 2
  setsid taskset -c $cores python3 -W ignore $CODE/benchmarks/network_lists.py train $data $STASH/g $R \
    --encoder $STASH/shared/models/e5-small --training "$@" > $R/$data.log 2>&1 < /dev/null &
}
case $1 in
start)
  mkdir -p $R $CODE/benchmarks
  cp -r src $CODE/ && cp benchmarks/*.py $CODE/benchmarks/
  network eurlex57k 0-7 epochs=${EURLEX_EPOCHS:-8}
  network yso-finna-en 8-15 epochs=${YSO_EPOCHS:-6} batch_size=256 rate=2e-4 head_rate=4e-3
  ;;
wait)
  SECONDS=0
  until [ $SECONDS -ge $2 ] || [ "$(ls $R/*.json 2>/dev/null | wc -l)" -ge 2 ]; do sleep 1; done
  cp $R/* $OUT/
  tail -n 3 $R/*.log | cut -c 1-1500
  nvidia-smi --query-gpu=utilization.gpu,memory.used --format=csv,noheader
  uptime
  ;;
esac
