# Every coreutil that works on files, on files that come out the same each time.
set -u
export LC_ALL=C TZ=UTC
stamp=202001020304.05
seq 1 20000 >numbers
tac numbers >backwards
sort -n backwards >sorted && cmp numbers sorted && echo same
shuf --random-source=numbers numbers | md5sum
split -l 3000 -d numbers part. && cat part.* | cmp - numbers && ls part.*
head -c 1000 numbers | tail -c 100 | od -c | tail -n 3
wc numbers backwards
paste -d, numbers backwards | cut -d, -f2 | uniq | cksum
tr 0-9 a-j <numbers | tee lettered | sha256sum
join <(sort numbers) <(sort backwards) | wc -l
comm -12 <(sort numbers) <(head -n 50 numbers | sort) | wc -l
fold -w 7 lettered | expand | unexpand -a | nl | tail -n 2
mkdir -p a/b/c && cp -r part.0* a/b/ && cp --sparse=always numbers a/b/c/sparse && cp -p numbers a/kept
dd if=/dev/zero of=zeros bs=4096 count=100 conv=fsync status=none && cp --reflink=auto zeros a/zeros
dd if=numbers of=patched bs=100 skip=3 seek=5 count=10 conv=notrunc status=none && md5sum patched
ln numbers a/hard && ln -s ../numbers a/soft && readlink a/soft && realpath --relative-to=. a/soft
mv part.00 a/moved && mv -T a/b a/renamed && rm part.01 && rmdir a/missing
install -m 640 numbers installed && chmod 600 sorted && chmod u+s installed
truncate -s 12345 truncated && truncate -s +5 truncated && wc -c truncated
touch -t $stamp numbers backwards sorted a a/* a/renamed/* a/renamed/c/* && touch -r numbers zeros
touch -h -t $stamp a/soft installed truncated
stat -c '%n %s %a %h %F %Y' numbers a/hard a/soft a installed truncated
ls -lR --time-style=+%s --color=never a | grep -v ^total | sed 's/ [a-z]* [a-z]* / /'
find . -type f -name 'part*' -print0 | sort -z | xargs -0 md5sum
cat missing; cp missing elsewhere; rm missing; echo "status $?"
cat <numbers >>appended; cat numbers >>appended; wc -l appended
csplit -s -f piece. numbers 5000 10000 && wc -l piece.*
base64 numbers | base64 -d | cmp - numbers && b2sum numbers && sum numbers
mkfifo pipe && (cat numbers >pipe &) && wc -l <pipe
df . >/dev/null && du --apparent-size -sb zeros
test -e numbers -a ! -e missing && echo exists
