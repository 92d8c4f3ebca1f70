#!/usr/bin/env bash
# Writes what `kubectl memfit export` says into $FILE on a branch of its own, and opens a pull request, or renews the one
# that is open. $1 is the plugin; the rest comes from the inputs of action.yml. Run in a checkout of $BASE.
set -euo pipefail
plugin=$1
: "${FILE:?the input file is empty}" "${BASE:?the input base is empty}" "${BRANCH:?the input branch is empty}"
[ "$BRANCH" != "$BASE" ] || { echo "::error::branch and base are both $BASE: the branch of the pull request is written anew each time"; exit 1; }
case $FILE in /* | ../* | */../* | */..) echo "::error::the input file is $FILE: a path inside the repository is wanted"; exit 1 ;; esac
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

args=(export --output "$FORMAT" --pull-request "$dir/body.md")
if [ -n "$NAMESPACE" ]; then args+=(--namespace "$NAMESPACE"); else args+=(--all-namespaces); fi
if [ "$NO_NAMESPACE" = true ]; then args+=(--no-namespace); fi
read -ra workloads <<<"$WORKLOADS"
"$plugin" "${args[@]}" ${workloads[@]+"${workloads[@]}"} >"$dir/patches"

# Comments are no change: memfit writes its reasons anew when evidence has changed, a few times a day.
same() { cmp --silent <(grep -v '^#' "$1") <(grep -v '^#' "$2"); }
url=$(gh pr list --head "$BRANCH" --base "$BASE" --state open --json url --jq '.[0].url // ""')
done_with() {
	echo "pull-request=$1" >>"$GITHUB_OUTPUT"
	echo "$2"
	exit 0
}

if [ -e "$FILE" ] && same "$FILE" "$dir/patches"; then
	# What an open pull request says is not recommended any more.
	[ -z "$url" ] || gh pr close "$url" --comment "memfit recommends what $BASE says already."
	done_with "" "$FILE has the recommended sizes already"
fi
if [ -n "$url" ] && git fetch --quiet origin "+refs/heads/$BRANCH:refs/remotes/origin/$BRANCH" &&
	git show "origin/$BRANCH:$FILE" >"$dir/proposed" && same "$dir/proposed" "$dir/patches" &&
	git merge-base --is-ancestor HEAD "origin/$BRANCH"; then
	done_with "$url" "$url has these sizes already"
fi

git switch --quiet --force-create "$BRANCH"
mkdir -p "$(dirname "$FILE")"
cp "$dir/patches" "$FILE"
git add -- "$FILE"
git -c user.name='github-actions[bot]' -c user.email='41898282+github-actions[bot]@users.noreply.github.com' commit --quiet --message "$TITLE" -- "$FILE"
git push --quiet --force origin "HEAD:refs/heads/$BRANCH"
if [ -n "$url" ]; then
	gh pr edit "$url" --title "$TITLE" --body-file "$dir/body.md"
else
	url=$(gh pr create --head "$BRANCH" --base "$BASE" --title "$TITLE" --body-file "$dir/body.md")
fi
done_with "$url" "$url"
