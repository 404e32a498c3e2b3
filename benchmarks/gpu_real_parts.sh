# What real_data.py and auto.py need on a lent GPU machine, in five folders that each fit into one call.
# usage: bash benchmarks/gpu_real_parts.sh   (makes benchmarks/work/p1 to p5; needs .venv and ../shared)
# Then one call a folder, `. benchmarks/gpu_setup.sh benchmarks/work/p1` and so on, and `bash benchmarks/gpu_real.sh`.
set -euo pipefail
cd "$(dirname "$0")/.."
WORK=benchmarks/work SHARED=../shared FIRST=19000000
rm -rf $WORK/p?
for part in 1 2 3 4 5; do mkdir -p $WORK/p$part/shared/data $WORK/p$part/shared/models; done
.venv/bin/python -m pip download --quiet --no-deps --dest $WORK/p1 --python-version 3.12 --only-binary=:all: \
  --platform manylinux_2_17_x86_64 --platform manylinux_2_28_x86_64 -c constraints.txt \
  zstandard pydantic pydantic_core annotated-types typing-inspection typer threadpoolctl annotated-doc shellingham lightgbm
cp /usr/lib/*/libgomp.so.1 $WORK/p1/ # LightGBM's; not every image has it
halves() { # ENCODER, part of its first half and its other files, part of its second half, bytes of the first half
  mkdir -p $WORK/p$2/shared/models/$1 $WORK/p$3/shared/models/$1
  for file in $SHARED/models/$1/*; do [ "${file##*/}" = model.safetensors ] || cp "$file" $WORK/p$2/shared/models/$1/; done
  head -c $4 $SHARED/models/$1/model.safetensors > $WORK/p$2/shared/models/$1/weights.aa
  tail -c +$(($4 + 1)) $SHARED/models/$1/model.safetensors > $WORK/p$3/shared/models/$1/weights.ab
}
cp -r $SHARED/data/eurlex57k $WORK/p1/shared/data/
cp -r $SHARED/data/tibkat-gnd $WORK/p2/shared/data/
cp -r $SHARED/data/debtags $SHARED/data/cooking-stackexchange $WORK/p3/shared/data/
cp -r $SHARED/data/yso-finna-en $WORK/p4/shared/data/
halves e5-small 2 3 $FIRST
halves multilingual-e5-small-deen 4 5 31000000
chmod -R u+w $WORK/p?
du -sm $WORK/p?
