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

/* What icsql_warm() has read. */
typedef struct IcsqlWarm {
  BtShared *pBt;
  unsigned int nMax;     /* Pages to read, at most */
  unsigned int nLoaded;
  Pgno *aInterior;       /* Interior pages */
  unsigned int nInterior, nAlloc;
} IcsqlWarm;

/*
** Reads a page of a b-tree, and notes it if it is an interior one. A page that is no b-tree's, or cannot be read, is passed
** over: whoever needs it will say so.
*/
static int icsqlWarmPage(IcsqlWarm *p, Pgno iPage){
  MemPage *pPage = 0;
  if( p->nLoaded>=p->nMax || iPage==0 || iPage>btreePagecount(p->pBt) ) return SQLITE_OK;
  if( btreeGetPage(p->pBt, iPage, &pPage, 0)!=SQLITE_OK ) return SQLITE_OK;
  p->nLoaded++;
  if( (pPage->isInit || btreeInitPage(pPage)==SQLITE_OK) && !pPage->leaf ){
    if( p->nInterior==p->nAlloc ){
      unsigned int nAlloc = p->nAlloc ? p->nAlloc*2 : 256;
      Pgno *aNew = sqlite3_realloc64(p->aInterior, nAlloc*sizeof(Pgno));
      if( aNew==0 ){
        releasePage(pPage);
        return SQLITE_NOMEM;
      }
      p->aInterior = aNew;
      p->nAlloc = nAlloc;
    }
    p->aInterior[p->nInterior++] = iPage;
  }
  releasePage(pPage);
  return SQLITE_OK;
}

/* The child before a cell of an interior page, or, for the number of its cells, the one after all; 0 for damage. */
static Pgno icsqlChild(MemPage *pPage, int i){
  u8 *pCell;
  if( i>=pPage->nCell ) return get4byte(&pPage->aData[pPage->hdrOffset+8]);
  pCell = findCell(pPage, i);
  return pCell+4<=pPage->aDataEnd ? get4byte(pCell) : 0;
}

/* Reads the children of an interior page: all, or the last. */
static int icsqlWarmChildren(IcsqlWarm *p, Pgno iPage, int bAll){
  MemPage *pPage = 0;
  int rc = SQLITE_OK;
  int i;
  if( btreeGetPage(p->pBt, iPage, &pPage, 0)!=SQLITE_OK ) return SQLITE_OK;
  if( pPage->isInit && !pPage->leaf ){
    for(i=bAll ? 0 : pPage->nCell; rc==SQLITE_OK && i<=pPage->nCell && p->nLoaded<p->nMax; i++){
      rc = icsqlWarmPage(p, icsqlChild(pPage, i));
    }
  }
  releasePage(pPage);
  return rc;
}

/*
** Reads b-tree pages into the page cache and parses their headers, up to nMax of them, from the roots of all tables and indexes:
** interior pages first, then leaves, so that the look-ups that follow read nothing, or as little as can be. Pages that hold the rest
** of large rows are not touched: an image may be larger than what one message may touch. The schema must be in heap.
*/
int icsql_warm(sqlite3 *db, unsigned int nMax, unsigned int *pnLoaded){
  Btree *p = db->aDb[0].pBt;
  Schema *pSchema = db->aDb[0].pSchema;
  IcsqlWarm w;
  HashElem *pElem;
  unsigned int iNext, nBefore;
  unsigned int nParent = 0;   /* aInterior[] begins with so many whose children are leaves */
  int rc;
  *pnLoaded = 0;
  memset(&w, 0, sizeof(w));
  w.pBt = p->pBt;
  w.nMax = nMax;
  rc = sqlite3BtreeBeginTrans(p, 0, 0);
  if( rc!=SQLITE_OK ) return rc;
  rc = icsqlWarmPage(&w, 1);
  for(pElem=sqliteHashFirst(&pSchema->tblHash); rc==SQLITE_OK && pElem; pElem=sqliteHashNext(pElem)){
    Table *pTab = (Table*)sqliteHashData(pElem);
    if( IsOrdinaryTable(pTab) && pTab->tnum>1 ) rc = icsqlWarmPage(&w, pTab->tnum);
  }
  for(pElem=sqliteHashFirst(&pSchema->idxHash); rc==SQLITE_OK && pElem; pElem=sqliteHashNext(pElem)){
    Index *pIdx = (Index*)sqliteHashData(pElem);
    /* That of a table without rowid is the table. */
    if( pIdx->tnum!=pIdx->pTable->tnum || HasRowid(pIdx->pTable) ) rc = icsqlWarmPage(&w, pIdx->tnum);
  }
  for(iNext=0; rc==SQLITE_OK && iNext<w.nInterior && w.nLoaded<nMax; iNext++){
    Pgno iPage = w.aInterior[iNext];
    /* All leaves of a tree are on one level: the last child tells of what kind all are. */
    nBefore = w.nInterior;
    rc = icsqlWarmChildren(&w, iPage, 0);
    if( w.nInterior==nBefore ){
      w.aInterior[nParent++] = iPage;
    }else if( rc==SQLITE_OK ){
      w.nInterior = nBefore;
      rc = icsqlWarmChildren(&w, iPage, 1);
    }
  }
  for(iNext=0; rc==SQLITE_OK && iNext<nParent && w.nLoaded<nMax; iNext++){
    rc = icsqlWarmChildren(&w, w.aInterior[iNext], 1);
  }
  sqlite3_free(w.aInterior);
  *pnLoaded = w.nLoaded;
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
