-- A photo is in its user's shard. Newer photos have larger IDs; between two shards that holds to some milliseconds.
create table photos (
  id bigint primary key default next_id(),
  user_id bigint not null references users,
  title text not null,
  likes int not null default 0,
  request_key text not null,
  unique (user_id, request_key) -- a request that is repeated makes no second photo
);

create index photos_of_user on photos (user_id, id desc);

---- create above / drop below ----

drop table photos;
