# What travels to a lent GPU machine, in three folders that each fit into one call (64 MiB with the checkout).
# usage: bash benchmarks/gpu_parts.sh [VECTORS]   (makes benchmarks/work/a, b and c; needs .venv and ../shared)
#   a  wheels for that machine's Python 3.12, the encoder's config, the first part of its weights, word vectors
#   b  the second part of the weights, eurlex57k, gpu_rows.sh
#   c  the tokens of eurlex57k, for neural_speed.py and neural_reference.py
# Then one call a folder: `. benchmarks/gpu_setup.sh benchmarks/work/a`, and so on; the machine must not get cold between.
set -euo pipefail
cd "$(dirname "$0")/.."
E5=../shared/models/e5-small DATA=../shared/data/eurlex57k WORK=benchmarks/work
rm -rf $WORK/a $WORK/b $WORK/c
mkdir -p $WORK/a/e5-small $WORK/b/eurlex57k $WORK/c
.venv/bin/python -m pip download --quiet --no-deps --dest $WORK/a --python-version 3.12 --only-binary=:all: \
  --platform manylinux_2_17_x86_64 -c constraints.txt \
  zstandard pydantic pydantic_core annotated-types typing-inspection typer threadpoolctl annotated-doc shellingham
for file in $E5/*; do [ "$file" = $E5/model.safetensors ] || cp "$file" $WORK/a/e5-small/; done
head -c 38000000 $E5/model.safetensors > $WORK/a/e5.aa
tail -c +38000001 $E5/model.safetensors > $WORK/b/e5.ab
cp $DATA/* $WORK/b/eurlex57k/
cp benchmarks/gpu_rows.sh $WORK/b/
[ $# -eq 0 ] || cp "$1" $WORK/a/vectors.txt.zst
.venv/bin/python benchmarks/neural_data.py $DATA $E5 $WORK/c/eurlex.npz
chmod -R u+w $WORK
du -sh $WORK/*
