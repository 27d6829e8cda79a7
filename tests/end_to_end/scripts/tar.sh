# Archives in several formats, with holes, links, long names and changes.
set -u
export LC_ALL=C TZ=UTC
mkdir -p in/deep/$(printf 'long%.0s' $(seq 40))
for i in $(seq 1 200); do seq "$i" 500 >"in/deep/f$i"; done
truncate -s 1M in/sparse && echo end >>in/sparse && ln in/deep/f1 in/hard && ln -s deep/f2 in/soft
mkfifo in/pipe && chmod 640 in/deep/f3 && find in -exec touch -h -d @1577934245 {} +
for format in gnu pax ustar; do
    tar --format=$format --sort=name --owner=0 --group=0 --numeric-owner --pax-option=exthdr.name=%d/PaxHeaders/%f,delete=atime,delete=ctime -cSf $format.tar in 2>errors
    [ $format = pax ] || sha256sum $format.tar # pax keeps process numbers in the names of parts of sparse files
    tar -tvf $format.tar | md5sum && cat errors
    mkdir out.$format && tar -xf $format.tar -C out.$format && diff -r --no-dereference in/deep out.$format/in/deep && cmp in/sparse out.$format/in/sparse && echo same
done
tar -czf - --mtime=@0 --sort=name --owner=0 --group=0 in | gzip -dc | tar -tf - | wc -l
echo more >in/new && touch -d @1577934245 in/new && tar -rf gnu.tar --owner=0 --group=0 in/new && tar -tf gnu.tar | tail -n 1
tar --delete -f gnu.tar in/new && tar -df gnu.tar; echo "status $?"
tar -xf missing.tar; echo "status $?"
