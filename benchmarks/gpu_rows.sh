# Rows of neural_accuracy.py and ablations.py on a lent GPU machine; sourced after gpu_setup.sh.
#   acc NAME ARGUMENTS...   e.g. acc light --only lightxml          results in $R/NAME.json, what it says in $R/NAME.log
#   abl --only GROUP...     results in $R/abl/GROUP.json, what it says in $R/abl-GROUP.log
# A command is over after ten minutes, but what `setsid` starts goes on until the machine is given back: start long rows
# with it, and let the next call wait for them. Trainings side by side share the GPU by turns: nothing is gained but the
# time that hosts take for words and tokens (half a minute a process). Seconds of an H200 alone: lightxml 235, aplc-xlnet
# about 150, attentionxml about 150 and treaderxml about 60 beside its words and neighbours, neural_speed.py 170.
export R=$STASH/res
mkdir -p $R
acc() {
  python3 -W ignore benchmarks/neural_accuracy.py --data $STASH/eurlex57k --encoder $STASH/e5-small \
    --vectors $STASH/vectors.txt.zst --out $R --name $1 "${@:2}" > $R/$1.log 2>&1
}
abl() {
  python3 -W ignore benchmarks/ablations.py run --data $STASH/eurlex57k --encoder $STASH/e5-small --out $R/abl "$@" \
    >> $R/abl-$2.log 2>&1
}
