# A queue of rows on a lent GPU machine, by one command that is given again and again until it says that all are done.
# usage: bash benchmarks/gpu_queue.sh JOBS SECONDS   (the folders of gpu_parts.sh must be there: see gpu_setup.sh)
# JOBS is a file with one command a line: `acc` and `abl` of gpu_rows.sh, or any other; its log and results belong into
# $R. The first call starts the queue, which goes on between calls; each call waits up to SECONDS and brings all that
# is there back as $OUT/results.tgz. Give the next call at once: half a minute without one, and the machine is gone.
# What a later call starts beside the queue needs `setsid`, or it ends with that call.
set -u
jobs=$1 most=$2
set --  # or what is sourced would take these for its own
. benchmarks/gpu_setup.sh
. benchmarks/gpu_rows.sh
if [ ! -f $R/begun ]; then
  cp "$jobs" $R/begun
  setsid bash -c '. benchmarks/gpu_rows.sh
    while read -r job; do echo "$SECONDS s: $job" >> $R/queue.log; eval "$job" < /dev/null; done < $R/begun
    touch $R/ended' > /dev/null 2>&1 &
fi
until [ -f $R/ended ] || [ $SECONDS -ge $most ]; do sleep 1; done
tar -C $R -czf $OUT/results.tgz .
tail -n 3 $R/*.log
[ -f $R/ended ] && echo "all done" || echo "not done yet: the same command again"
