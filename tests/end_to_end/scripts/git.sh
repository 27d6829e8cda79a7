# A repository with branches, a conflict, packs and a clone: object names depend on nothing but content.
set -u
export LC_ALL=C HOME=$PWD GIT_CONFIG_NOSYSTEM=1 GIT_PAGER=cat GIT_AUTHOR_DATE='2020-01-02T03:04:05Z' GIT_COMMITTER_DATE='2020-01-02T03:04:05Z'
git config --global user.name n && git config --global user.email e@x && git config --global init.defaultBranch main
git config --global pack.threads 1 && git config --global gc.auto 0 && git config --global maintenance.auto false
git init -q work && cd work
for i in $(seq 1 60); do seq "$i" 900 >"file.$i"; done
git add . && git commit -qm one && git log --format=%H
git checkout -qb side && sed -i s/^7/x/ file.* && git commit -qam two && git checkout -q main
echo other >file.9 && git rm -q file.1 && git commit -qam three
git merge side; echo "status $?"; git status --short | head -n 5
git checkout -q --theirs . 2>&1; git add -A && git commit -qm merged && git log --graph --format='%H %s'
git tag -a v1 -m tagged && git gc -q && git repack -adq && git fsck --strict; echo "status $?"
cd .. && git clone -q work clone && cd clone && git diff --stat v1~1 | tail -n 1
git stash list; echo change >>file.20 && git stash -q && git stash pop -q && git diff | sha1sum
git archive v1 | sha1sum; git grep -c 99 | wc -l; git bundle create -q ../bundle --all && git bundle verify -q ../bundle; git blame file.30 | sha1sum
git rev-parse HEAD v1
