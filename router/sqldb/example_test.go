package sqldb_test

import (
	"context"
	"fmt"
	"log"

	"gorm.io/driver/postgres"
	"gorm.io/gorm"

	"github.com/kiloshard/kiloshard/router/sqldb"
	"github.com/kiloshard/kiloshard/shards"
)

func Example() {
	ctx := context.Background()
	r, err := newRouter(ctx, "cache_statement", 4)
	if err != nil {
		log.Fatal(err)
	}
	defer r.Close()

	shard, err := r.ForShard(26)
	if err != nil {
		log.Fatal(err)
	}
	db := sqldb.Open(shard)
	defer db.Close()

	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer tx.Rollback()
	if _, err := tx.ExecContext(ctx, `insert into photos (owner, title) values ($1, $2)`, 1050, "sunset"); err != nil {
		log.Fatal(err)
	}
	if err := tx.Commit(); err != nil {
		log.Fatal(err)
	}
	var title string
	if err := db.QueryRowContext(ctx, `select title from photos where owner = $1`, 1050).Scan(&title); err != nil {
		log.Fatal(err)
	}
	fmt.Println(title, "is in", shard)
	// Output: sunset is in shard 26 (shard_00026 on pg-b)
}

// One model of gorm's serves all shards. Photo has ID int64 `gorm:"primaryKey;autoIncrement:false;default:next_id()"`.
func Example_gorm() {
	ctx := context.Background()
	r, err := newRouter(ctx, "cache_statement", 4)
	if err != nil {
		log.Fatal(err)
	}
	defer r.Close()

	for _, number := range []shards.Number{27, 28} {
		shard, err := r.ForShard(number)
		if err != nil {
			log.Fatal(err)
		}
		db := sqldb.Open(shard)
		orm, err := gorm.Open(postgres.New(postgres.Config{Conn: db}), &gorm.Config{DisableAutomaticPing: true})
		if err != nil {
			log.Fatal(err)
		}
		photo := Photo{Owner: 1000 + int64(number), SeenBy: "public"}
		if err := orm.WithContext(ctx).Create(&photo).Error; err != nil {
			log.Fatal(err)
		}
		var found Photo
		if err := orm.WithContext(ctx).First(&found, photo.ID).Error; err != nil {
			log.Fatal(err)
		}
		fmt.Println("a photo of", found.Owner, "is in", shard)
		if err := db.Close(); err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// a photo of 1027 is in shard 27 (shard_00027 on pg-b)
	// a photo of 1028 is in shard 28 (shard_00028 on pg-b)
}
