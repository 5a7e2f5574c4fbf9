#!/bin/sh
# A worker that says what it is told: what is written to the pipes $SPEAK/RANK.stdout and
# $SPEAK/RANK.stderr goes to its streams as it comes. It ends when it is killed.
cat <>"$SPEAK/$RANK.stderr" >&2 &
exec cat <>"$SPEAK/$RANK.stdout"
