package metrics

import (
	"errors"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/router/operation"
)

// classes are the classes of Postgres's own SQLSTATEs (the manual's appendix A).
var classes = map[string]bool{
	"01": true, "02": true, "03": true, "08": true, "09": true, "0A": true, "0B": true, "0F": true, "0L": true, "0P": true,
	"0Z": true, "10": true, "20": true, "21": true, "22": true, "23": true, "24": true, "25": true, "26": true, "27": true,
	"28": true, "2B": true, "2D": true, "2F": true, "34": true, "38": true, "39": true, "3B": true, "3D": true, "3F": true,
	"40": true, "42": true, "44": true, "53": true, "54": true, "55": true, "57": true, "58": true, "72": true, "F0": true,
	"HV": true, "P0": true, "XX": true,
}

// class returns the class of an error, one of about fifty. A function may raise any SQLSTATE: if its class is not one of Postgres's,
// the class is other.
func class(err error) string {
	class := operation.Classify(err)
	var refusal *pgconn.PgError
	switch {
	case !errors.As(err, &refusal) || refusal.Code != class:
		return class
	case len(class) == 5 && classes[class[:2]]:
		return class[:2]
	}
	return operation.ClassOther
}
