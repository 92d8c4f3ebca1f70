// Records a terminal. A module of its own, so that what opens the terminal is no dependency of the operator.
module github.com/memfit/memfit/hack/cast

go 1.26.0

require github.com/creack/pty v1.1.24
