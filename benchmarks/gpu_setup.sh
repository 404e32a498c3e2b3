# On a lent GPU machine without a network: what longtail needs beside that machine's own Python, from carried files.
# usage: . benchmarks/gpu_setup.sh   (sets PYTHONPATH and STASH; files of earlier calls stay in the stash)
export STASH=/root/stash
mkdir -p $STASH/py/longtail-0.1.0.dist-info
printf 'Metadata-Version: 2.1\nName: longtail\nVersion: 0.1.0\n' > $STASH/py/longtail-0.1.0.dist-info/METADATA
for part in benchmarks/work/gpu benchmarks/work/gpu0 benchmarks/work/gpu2; do
  [ -d $part ] && cp -r $part/. $STASH/
done
for wheel in $STASH/*.whl; do python3 -m zipfile -e $wheel $STASH/py/ && rm $wheel; done
[ -f $STASH/e5.aa ] && [ -f $STASH/e5.ab ] && cat $STASH/e5.aa $STASH/e5.ab > $STASH/e5-small/model.safetensors
export PYTHONPATH=$PWD/src:$STASH/py PYTHONUNBUFFERED=1
