package move

// hold calls [Config.Hold], unless that is in force: the shard is about to be fenced, or is.
func (j *job) hold() {
	if j.release == nil && j.cfg.Hold != nil {
		j.release = j.cfg.Hold()
	}
}

// letGo ends what hold began: a host serves the shard again, or this program can do no more about it.
func (j *job) letGo() {
	if j.release != nil {
		j.release()
		j.release = nil
	}
}
