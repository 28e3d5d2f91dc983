package dsn

// Format returns the DSN as if a setting had changed.
func (d DSN) Format() string {
	d.text = ""
	return d.String()
}
