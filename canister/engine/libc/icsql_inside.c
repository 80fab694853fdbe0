/*
** The few things that the engine needs from SQLite's inside and that the public interface does not offer. Part of the
** one translation unit that also holds SQLite.
**
** Every function works on the main database of a connection that is in no other thread's hands
** (SQLITE_THREADSAFE=0), and changes nothing in the file.
*/

static Pager *icsqlPager(sqlite3 *db){
  return sqlite3BtreePager(db->aDb[0].pBt);
}

/*
** Switches the rollback journal between memory (bMemory!=0) and none. Only between transactions. Returns 1 if the
** pager is in the wanted mode afterwards.
*/
int icsql_journal_in_memory(sqlite3 *db, int bMemory){
  int eMode = bMemory ? PAGER_JOURNALMODE_MEMORY : PAGER_JOURNALMODE_OFF;
  return sqlite3PagerSetJournalMode(icsqlPager(db), eMode)==eMode;
}

/*
** Tells the pager that it is alone with its file, so that the first commit after opening need not count up the change
** counter in page 1, which only other connections would look at. A commit that writes page 1 anyway still counts.
*/
void icsql_alone(sqlite3 *db){
  icsqlPager(db)->changeCountDone = 1;
}

/*
** Undoes the open transaction, as ROLLBACK does, but needs no memory: a prepared ROLLBACK has to be prepared again when
** the schema was changed in the transaction, which fails just when the heap is full.
*/
void icsql_rollback(sqlite3 *db){
  sqlite3RollbackAll(db, SQLITE_ABORT_ROLLBACK);
  sqlite3CloseSavepoints(db);
  db->autoCommit = 1;
}

/* Pages that the image has at the end of the transaction that is open, or has now. */
unsigned int icsql_page_count(sqlite3 *db){
  return sqlite3BtreeLastPage(db->aDb[0].pBt);
}

/* Whether COMMIT would write this dirty page now. The pager asks the same of each. */
static int icsqlWillWrite(Pager *pPager, PgHdr *p){
  return p->pgno<=pPager->dbSize && (p->flags & PGHDR_DONT_WRITE)==0;
}

/* Pages that COMMIT would write if it came now. */
unsigned int icsql_dirty_pages(sqlite3 *db){
  Pager *pPager = icsqlPager(db);
  unsigned int n = 0;
  PgHdr *p;
  for(p=pPager->pPCache->pDirty; p; p=p->pDirtyNext) n += icsqlWillWrite(pPager, p);
  return n;
}

/* The page cache's own object for the main database: what its xCreate method answered. */
sqlite3_pcache *icsql_pcache(sqlite3 *db){
  return icsqlPager(db)->pPCache->pCache;
}

/* Pages of the image that are in the page cache. */
unsigned int icsql_cached_pages(sqlite3 *db){
  return (unsigned int)sqlite3PcachePagecount(icsqlPager(db)->pPCache);
}

/* The schema cookie of the parsed schema, which changes with every DDL statement. */
unsigned int icsql_schema_cookie(sqlite3 *db){
  return (unsigned int)db->aDb[0].pSchema->schema_cookie;
}

/* Whether the schema of the main database is parsed and in heap. */
int icsql_schema_loaded(sqlite3 *db){
  return DbHasProperty(db, 0, DB_SchemaLoaded)!=0;
}

/*
** Reads up to nMax b-tree pages into the page cache and parses their headers, interior pages first, so that the
** look-ups that follow read nothing. Pages of other kinds (overflow, free) start with a zero byte or hold an old
** b-tree page, and are passed over or parsed in vain.
*/
int icsql_warm(sqlite3 *db, unsigned int nMax, unsigned int *pnLoaded){
  Btree *p = db->aDb[0].pBt;
  BtShared *pBt = p->pBt;
  unsigned int nLoaded = 0;
  int rc, iPass;
  *pnLoaded = 0;
  rc = sqlite3BtreeBeginTrans(p, 0, 0);
  if( rc!=SQLITE_OK ) return rc;
  for(iPass=0; iPass<2 && rc==SQLITE_OK; iPass++){
    Pgno nPage = btreePagecount(pBt);
    Pgno iPage;
    for(iPage=1; iPage<=nPage && nLoaded<nMax; iPage++){
      unsigned char eType = 0;
      i64 iOff = ((i64)iPage-1)*pBt->pageSize + (iPage==1 ? 100 : 0);
      int bWanted;
      if( sqlite3OsRead(pBt->pPager->fd, &eType, 1, iOff)!=SQLITE_OK ) continue;
      bWanted = iPass==0
          ? (eType==(PTF_INTKEY|PTF_LEAFDATA) || eType==PTF_ZERODATA)
          : (eType==(PTF_INTKEY|PTF_LEAFDATA|PTF_LEAF) || eType==(PTF_ZERODATA|PTF_LEAF));
      if( bWanted ){
        MemPage *pPage = 0;
        rc = btreeGetPage(pBt, iPage, &pPage, 0);
        if( rc!=SQLITE_OK ) break;
        if( !pPage->isInit ) (void)btreeInitPage(pPage);
        releasePage(pPage);
        nLoaded++;
      }
    }
  }
  *pnLoaded = nLoaded;
  sqlite3BtreeCommit(p);
  return rc;
}

static int icsqlHaltsWithFail(const Op *aOp, int nOp){
  int i;
  for(i=0; i<nOp; i++){
    int op = aOp[i].opcode;
    if( (op==OP_Halt || op==OP_HaltIfNull) && aOp[i].p2==OE_Fail ) return 1;
    if( op==OP_VUpdate && aOp[i].p5==OE_Fail ) return 1;
  }
  return 0;
}

/*
** Whether a statement can fail and keep the rows that it had changed until then: OR FAIL, ON CONFLICT FAIL and RAISE(FAIL),
** also in its triggers.
*/
int icsql_can_fail_partly(sqlite3_stmt *pStmt){
  Vdbe *p = (Vdbe*)pStmt;
  SubProgram *pSub;
  if( icsqlHaltsWithFail(p->aOp, p->nOp) ) return 1;
  for(pSub=p->pProgram; pSub; pSub=pSub->pNext){
    if( icsqlHaltsWithFail(pSub->aOp, pSub->nOp) ) return 1;
  }
  return 0;
}

/* A column of the row that a statement is on. For text and blobs p points to n bytes that live as SQLite's would. */
typedef struct IcsqlValue {
  int eType;             /* SQLITE_INTEGER to SQLITE_NULL */
  int n;
  union { sqlite3_int64 i; double r; const void *p; } u;
} IcsqlValue;

/*
** Answers in one call what sqlite3_column_type(), sqlite3_column_blob() and sqlite3_column_bytes() answer in three, for
** a connection whose texts are UTF-8. Returns a result code: SQLITE_RANGE without such a column, SQLITE_NOMEM if a blob
** of zeros could not be written out.
*/
int icsql_column(sqlite3_stmt *pStmt, int iCol, IcsqlValue *pOut){
  Vdbe *p = (Vdbe*)pStmt;
  Mem *pMem;
  u16 f;
  if( p->pResultRow==0 || iCol<0 || iCol>=p->nResColumn ) return SQLITE_RANGE;
  pMem = &p->pResultRow[iCol];
  f = pMem->flags;
  if( f & MEM_Null ){
    pOut->eType = SQLITE_NULL;
  }else if( f & MEM_Str ){
    pOut->eType = SQLITE_TEXT;
    pOut->n = pMem->n;
    pOut->u.p = pMem->z;
  }else if( f & MEM_Int ){
    pOut->eType = SQLITE_INTEGER;
    pOut->u.i = pMem->u.i;
  }else if( f & MEM_IntReal ){
    pOut->eType = SQLITE_FLOAT;
    pOut->u.r = (double)pMem->u.i;
  }else if( f & MEM_Real ){
    pOut->eType = SQLITE_FLOAT;
    pOut->u.r = pMem->u.r;
  }else{
    if( ExpandBlob(pMem)!=SQLITE_OK ) return SQLITE_NOMEM;
    pOut->eType = SQLITE_BLOB;
    pOut->n = pMem->n;
    pOut->u.p = pMem->z;
  }
  return SQLITE_OK;
}

/*
** Binds a text, a blob or an integer by reference, as sqlite3_bind_text64() and its sisters do with SQLITE_STATIC, at a
** third of their cost. Returns 0 for whatever is not plain (a statement that runs, a parameter that does not exist or
** that the plan depends on, a value over the limit): the caller then asks the sister, which also finds the error.
*/
int icsql_bind(sqlite3_stmt *pStmt, int i, const IcsqlValue *pValue){
  Vdbe *p = (Vdbe*)pStmt;
  Mem *pVar;
  if( p->eVdbeState!=VDBE_READY_STATE || i<1 || i>p->nVar || p->expmask!=0 ) return 0;
  pVar = &p->aVar[i-1];
  if( VdbeMemDynamic(pVar) || pVar->szMalloc!=0 ) return 0;
  if( pValue->eType==SQLITE_INTEGER ){
    pVar->u.i = pValue->u.i;
    pVar->flags = MEM_Int;
  }else{
    if( pValue->n>p->db->aLimit[SQLITE_LIMIT_LENGTH] ) return 0;
    pVar->z = (char*)pValue->u.p;
    pVar->n = pValue->n;
    pVar->enc = SQLITE_UTF8;
    pVar->flags = pValue->eType==SQLITE_TEXT ? (MEM_Str|MEM_Static) : (MEM_Blob|MEM_Static);
  }
  return 1;
}

/*
** Bytes of the row that a statement is on: those of its texts and blobs, and 8 for each number. *pLargest is raised to
** the largest text or blob.
*/
sqlite3_int64 icsql_row_bytes(sqlite3_stmt *pStmt, sqlite3_int64 *pLargest){
  Vdbe *p = (Vdbe*)pStmt;
  sqlite3_int64 nRow = 0;
  int i;
  if( p->pResultRow==0 ) return 0;
  for(i=0; i<p->nResColumn; i++){
    Mem *pMem = &p->pResultRow[i];
    u16 f = pMem->flags;
    if( f & (MEM_Str|MEM_Blob) ){
      sqlite3_int64 n = pMem->n;
      if( f & MEM_Zero ) n += pMem->u.nZero;
      if( n>*pLargest ) *pLargest = n;
      nRow += n;
    }else if( (f & MEM_Null)==0 ){
      nRow += 8;
    }
  }
  return nRow;
}
