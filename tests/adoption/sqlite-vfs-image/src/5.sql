CREATE VIRTUAL TABLE search USING fts5(title, body);
