-- A like is in the photo's shard. Who likes may be in any shard.
create table likes (
  photo_id bigint not null references photos,
  user_id bigint not null,
  primary key (photo_id, user_id)
);

---- create above / drop below ----

drop table likes;
