module server

go 1.24

require suite.test/work v0.0.0

replace suite.test/work => ../../work/go
