module suite.test/work

go 1.24
