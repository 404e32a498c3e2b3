# On a lent GPU machine without a network: what longtail needs beside that machine's own Python, from carried folders.
# usage: . benchmarks/gpu_setup.sh FOLDER...   (sets PYTHONPATH and STASH; files of earlier calls stay in the stash)
# A folder may hold wheels for that Python, data sets, and encoders whose weights are cut in two (FOLDER/weights.aa and
# .ab; e5.aa and e5.ab belong to e5-small).
export STASH=/root/stash
mkdir -p $STASH/py/longtail-0.1.0.dist-info
printf 'Metadata-Version: 2.1\nName: longtail\nVersion: 0.1.0\n' > $STASH/py/longtail-0.1.0.dist-info/METADATA
for part in "$@"; do cp -r "$part"/. $STASH/; done
for wheel in $(ls $STASH/*.whl 2>/dev/null); do python3 -m zipfile -e $wheel $STASH/py/ && rm $wheel; done
if [ -f $STASH/e5.aa ] && [ -f $STASH/e5.ab ]; then cat $STASH/e5.aa $STASH/e5.ab > $STASH/e5-small/model.safetensors; fi
for second in $(find $STASH -name weights.ab); do
  folder=$(dirname $second)
  [ ! -f $folder/weights.aa ] || { cat $folder/weights.aa $second > $folder/model.safetensors && rm $folder/weights.a?; }
done
export PYTHONPATH=$PWD/src:$STASH/py PYTHONUNBUFFERED=1
