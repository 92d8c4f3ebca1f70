module goprobe

go 1.18
