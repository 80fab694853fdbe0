CREATE TABLE author(id INTEGER PRIMARY KEY, name TEXT NOT NULL);
CREATE TABLE note(
    id INTEGER PRIMARY KEY,
    author INTEGER NOT NULL REFERENCES author(id),
    title TEXT NOT NULL UNIQUE,
    body TEXT NOT NULL,
    weight REAL,
    attachment BLOB
);
