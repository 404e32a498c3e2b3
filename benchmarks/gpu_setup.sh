# On a lent GPU machine without a network: what longtail needs beside that machine's own Python, from carried folders.
# usage: . benchmarks/gpu_setup.sh FOLDER...   (sets PYTHONPATH and STASH; files of earlier calls stay in the stash)
# A folder may hold wheels for that Python, data sets, and an encoder whose weights are cut in two (e5.aa, e5.ab).
export STASH=/root/stash
mkdir -p $STASH/py/longtail-0.1.0.dist-info
printf 'Metadata-Version: 2.1\nName: longtail\nVersion: 0.1.0\n' > $STASH/py/longtail-0.1.0.dist-info/METADATA
for part in "$@"; do cp -r "$part"/. $STASH/; done
for wheel in $(ls $STASH/*.whl 2>/dev/null); do python3 -m zipfile -e $wheel $STASH/py/ && rm $wheel; done
if [ -f $STASH/e5.aa ] && [ -f $STASH/e5.ab ]; then cat $STASH/e5.aa $STASH/e5.ab > $STASH/e5-small/model.safetensors; fi
export PYTHONPATH=$PWD/src:$STASH/py PYTHONUNBUFFERED=1
