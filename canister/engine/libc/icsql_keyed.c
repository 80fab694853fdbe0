/*
** A table without rowid whose key is one text, read and written on its b-tree instead of by SQL. Part of the one
** translation unit that also holds SQLite. Positions in the tree are found by the engine's own walk over the page cache
** (src/db/keyed/tree.rs), or, where that cannot tell, by SQLite's.
**
** After any failure of a function that writes, the transaction has to be undone as a whole: no statement journal is
** kept.
*/

/* Column types that the engine checks before it writes: those of a STRICT table. */
#define ICSQL_COLUMN_ANY      0
#define ICSQL_COLUMN_BLOB     1
#define ICSQL_COLUMN_INTEGER  2
#define ICSQL_COLUMN_TEXT     3
#define ICSQL_COLUMN_NOT_NULL 0x80

/* What keeps a table from being used by its key. */
#define ICSQL_KEYED_OK        0
#define ICSQL_KEYED_MISSING   1   /* There is no such table, or it is none of the ordinary kind */
#define ICSQL_KEYED_SHAPE     2   /* Not STRICT, not WITHOUT ROWID, or its key is not its first column alone, a text */
#define ICSQL_KEYED_RULES     3   /* Indexes, triggers, foreign keys, CHECKs, defaults, generated or REAL columns */
#define ICSQL_KEYED_COLUMNS   4   /* More columns than there is room for */
#define ICSQL_KEYED_PAGES     5   /* Bytes at the end of each page are reserved */

/*
** A number that no two states of the schema share, or 0 if the schema is not in heap.
*/
sqlite3_uint64 icsql_schema_state(sqlite3 *db){
  Schema *p = db->aDb[0].pSchema;
  if( !DbHasProperty(db, 0, DB_SchemaLoaded) ) return 0;
  return ((sqlite3_uint64)(u32)p->iGeneration<<32 | (u32)p->schema_cookie) + 1;
}

/*
** Looks at a table. Answers what keeps it from being used by its key, or ICSQL_KEYED_OK with its root page, the number of its
** columns, and their types in aType[], which has room for nType. The schema must be in heap.
*/
int icsql_keyed_open(
  sqlite3 *db,
  const char *zTable,
  unsigned int *piRoot,
  unsigned char *aType,
  int nType,
  int *pnCol
){
  Table *pTab = sqlite3FindTable(db, zTable, db->aDb[0].zDbSName);
  BtShared *pBt = db->aDb[0].pBt->pBt;
  Index *pPk;
  int i;
  if( pTab==0 || !IsOrdinaryTable(pTab) ) return ICSQL_KEYED_MISSING;
  if( HasRowid(pTab) || (pTab->tabFlags & TF_Strict)==0 ) return ICSQL_KEYED_SHAPE;
  if( pTab->pTrigger || pTab->pCheck || pTab->u.tab.pFKey || pTab->u.tab.pDfltList
   || sqlite3FkReferences(pTab) || (pTab->tabFlags & TF_HasGenerated)!=0
  ){
    return ICSQL_KEYED_RULES;
  }
  pPk = sqlite3PrimaryKeyIndex(pTab);
  if( pPk==0 || pTab->pIndex!=pPk || pPk->pNext ) return ICSQL_KEYED_RULES;
  if( pPk->nKeyCol!=1 || pPk->nColumn!=pTab->nCol || pPk->azColl[0]!=sqlite3StrBINARY
   || pPk->aSortOrder[0]!=SQLITE_SO_ASC || pTab->aCol[0].eCType!=COLTYPE_TEXT || pPk->tnum<2
  ){
    return ICSQL_KEYED_SHAPE;
  }
  if( pTab->nCol>nType ) return ICSQL_KEYED_COLUMNS;
  if( pBt->usableSize!=pBt->pageSize ) return ICSQL_KEYED_PAGES;
  for(i=0; i<pTab->nCol; i++){
    if( pPk->aiColumn[i]!=i ) return ICSQL_KEYED_SHAPE;
    switch( pTab->aCol[i].eCType ){
      case COLTYPE_ANY:      aType[i] = ICSQL_COLUMN_ANY;     break;
      case COLTYPE_BLOB:     aType[i] = ICSQL_COLUMN_BLOB;    break;
      case COLTYPE_TEXT:     aType[i] = ICSQL_COLUMN_TEXT;    break;
      case COLTYPE_INT:
      case COLTYPE_INTEGER:  aType[i] = ICSQL_COLUMN_INTEGER; break;
      default: return ICSQL_KEYED_RULES;
    }
    if( i==0 || pTab->aCol[i].notNull ) aType[i] |= ICSQL_COLUMN_NOT_NULL;
  }
  *piRoot = pPk->tnum;
  *pnCol = pTab->nCol;
  return ICSQL_KEYED_OK;
}

/*
** The page cache's own object, if the pages in it are those of the image as the open transaction, or the last, has left
** them; else null. In exclusive locking mode the pager looks at the file again only after it was reset.
*/
sqlite3_pcache *icsql_clean_pcache(sqlite3 *db){
  Pager *pPager = icsqlPager(db);
  if( pPager->errCode || pPager->eState<PAGER_READER || pPager->eState>=PAGER_ERROR ) return 0;
  return pPager->pPCache->pCache;
}

/* What a function answers that SQLite's own interface would end with sqlite3ApiExit(): a failed allocation is over. */
static int icsqlExit(sqlite3 *db, int rc){
  return rc==SQLITE_OK && db->mallocFailed==0 ? SQLITE_OK : sqlite3ApiExit(db, rc);
}

/* A cursor on such a table, and all that it needs. One field of a key is compared, by memcmp(). */
typedef struct IcsqlCursor {
  BtCursor cur;
  Mem aMem[1];
  UnpackedRecord rec;
  struct {
    KeyInfo key;
    CollSeq *aColl[2];
    u8 aSortFlags[4];
  } info;
} IcsqlCursor;

static int icsqlCursorOpen(sqlite3 *db, IcsqlCursor *p, unsigned int iRoot, int bWrite){
  KeyInfo *pKey = &p->info.key;
  memset(&p->info, 0, sizeof(p->info));
  pKey->nRef = 1;
  pKey->enc = SQLITE_UTF8;
  pKey->nKeyField = 1;
  pKey->nAllField = 1;
  pKey->db = db;
  pKey->aSortFlags = p->info.aSortFlags;
  sqlite3BtreeCursorZero(&p->cur);
  return sqlite3BtreeCursor(db->aDb[0].pBt, iRoot, bWrite ? BTREE_WRCSR : 0, pKey, &p->cur);
}

/*
** Finds a key from the root. *pRes is 0 if the cursor is on it, else below or above 0 if it is on a neighbour that comes
** before or after it.
*/
static int icsqlSeek(IcsqlCursor *p, const char *zKey, int nKey, int *pRes){
  p->aMem[0].z = (char*)zKey;
  p->aMem[0].n = nKey;
  p->aMem[0].flags = MEM_Str;
  p->aMem[0].enc = SQLITE_UTF8;
  p->rec.pKeyInfo = &p->info.key;
  p->rec.aMem = p->aMem;
  p->rec.nField = 1;
  p->rec.default_rc = 0;
  p->rec.eqSeen = 0;
  return sqlite3BtreeIndexMoveto(&p->cur, &p->rec, pRes);
}

/*
** Puts a cursor where the engine's walk has found a key or its neighbour: aPath[] holds the child taken on each level and
** then the cell.
*/
static int icsqlFollow(IcsqlCursor *p, const unsigned short *aPath, int nPath){
  BtCursor *pCur = &p->cur;
  int i;
  int rc = moveToRoot(pCur);
  for(i=0; rc==SQLITE_OK && i<nPath-1; i++){
    MemPage *pPage = pCur->pPage;
    Pgno iChild;
    if( pPage->leaf || aPath[i]>pPage->nCell ) return SQLITE_CORRUPT_PAGE(pPage);
    pCur->ix = aPath[i];
    if( aPath[i]==pPage->nCell ){
      iChild = get4byte(&pPage->aData[pPage->hdrOffset+8]);
    }else{
      iChild = get4byte(findCell(pPage, aPath[i]));
    }
    rc = moveToChild(pCur, iChild);
  }
  if( rc!=SQLITE_OK ) return rc;
  if( aPath[i]>=pCur->pPage->nCell ) return SQLITE_CORRUPT_PAGE(pCur->pPage);
  pCur->ix = aPath[i];
  return SQLITE_OK;
}

/* Which record icsql_keyed_read() reads. */
#define ICSQL_READ_EXACT  0   /* That with the key */
#define ICSQL_READ_FROM   1   /* The first whose key is not below it */
#define ICSQL_READ_ABOVE  2   /* The first whose key is above it */
#define ICSQL_READ_BELOW  3   /* The last whose key is below it */
#define ICSQL_READ_LAST   4   /* The last of all */

/* Moves the cursor to the record that is wanted. *pbFound: whether there is one. */
static int icsqlFind(IcsqlCursor *p, const char *zKey, int nKey, int eWhich, int *pbFound){
  BtCursor *pCur = &p->cur;
  int res = 0;
  int rc;
  *pbFound = 0;
  if( eWhich==ICSQL_READ_LAST ){
    rc = sqlite3BtreeLast(pCur, &res);
    *pbFound = rc==SQLITE_OK && res==0;
    return rc;
  }
  rc = icsqlSeek(p, zKey, nKey, &res);
  if( rc!=SQLITE_OK || pCur->eState!=CURSOR_VALID ) return rc;
  switch( eWhich ){
    case ICSQL_READ_EXACT: *pbFound = res==0; return SQLITE_OK;
    case ICSQL_READ_FROM:  if( res<0 ) rc = sqlite3BtreeNext(pCur, 0); break;
    case ICSQL_READ_ABOVE: if( res<=0 ) rc = sqlite3BtreeNext(pCur, 0); break;
    default:               if( res>=0 ) rc = sqlite3BtreePrevious(pCur, 0); break;
  }
  *pbFound = rc==SQLITE_OK;
  return rc==SQLITE_DONE ? SQLITE_OK : rc;
}

/*
** Copies the bytes of a record, as many as fit into nBuf, and answers its size in *pnRecord; -1 if there is none.
*/
int icsql_keyed_read(
  sqlite3 *db,
  unsigned int iRoot,
  const char *zKey, int nKey, int eWhich,
  void *pBuf, int nBuf,
  sqlite3_int64 *pnRecord
){
  Btree *pBtree = db->aDb[0].pBt;
  int bBegun = pBtree->inTrans==TRANS_NONE;
  IcsqlCursor c;
  int bFound = 0;
  int rc;
  *pnRecord = -1;
  if( bBegun ){
    rc = sqlite3BtreeBeginTrans(pBtree, 0, 0);
    if( rc!=SQLITE_OK ) return icsqlExit(db, rc);
  }
  rc = icsqlCursorOpen(db, &c, iRoot, 0);
  if( rc==SQLITE_OK ){
    rc = icsqlFind(&c, zKey, nKey, eWhich, &bFound);
    if( bFound ){
      u32 nRecord = sqlite3BtreePayloadSize(&c.cur);
      *pnRecord = nRecord;
      if( (u32)nBuf>nRecord ) nBuf = (int)nRecord;
      if( nBuf>0 ) rc = sqlite3BtreePayload(&c.cur, 0, (u32)nBuf, pBuf);
    }
    sqlite3BtreeCloseCursor(&c.cur);
  }
  if( bBegun ) sqlite3BtreeCommit(pBtree);
  return icsqlExit(db, rc);
}

/*
** Begins a transaction that writes, as a statement outside of BEGIN does, or goes on in the one that is open.
*/
int icsql_keyed_begin(sqlite3 *db){
  return icsqlExit(db, sqlite3BtreeBeginTrans(db->aDb[0].pBt, 1, 0));
}

/*
** What a writing changed: nRange ranges of bytes of the page iPage, each from aRange[2*i] up to aRange[2*i+1], and nothing else; or, if iPage
** is 0, whatever it was.
*/
typedef struct IcsqlChange {
  unsigned int iPage;
  unsigned int nRange;
  unsigned int aRange[4];
} IcsqlChange;

/* Bytes of a cell that is put together on the stack. */
#define ICSQL_CELL_BYTES 1100

/*
** Replaces the record in a cell by one of the same size. Returns 0 if it is not of the same size, or not all in its cell.
*/
static int icsqlOverwrite(MemPage *pPage, int iCell, const void *pRecord, int nRecord, IcsqlChange *pChange, int *pRc){
  CellInfo info;
  pPage->xParseCell(pPage, findCell(pPage, iCell), &info);
  if( info.nPayload!=(u32)nRecord || info.nLocal!=info.nPayload
   || info.pPayload+nRecord>pPage->aDataEnd || info.pPayload<pPage->aData+pPage->cellOffset
  ){
    return 0;
  }
  if( memcmp(info.pPayload, pRecord, nRecord)!=0 ){
    int bClean = (pPage->pDbPage->flags & PGHDR_DIRTY)==0;
    *pRc = sqlite3PagerWrite(pPage->pDbPage);
    if( *pRc==SQLITE_OK ){
      memcpy(info.pPayload, pRecord, nRecord);
      if( bClean ){
        pChange->iPage = pPage->pgno;
        pChange->nRange = 1;
        pChange->aRange[0] = (unsigned int)(info.pPayload - pPage->aData);
        pChange->aRange[1] = pChange->aRange[0] + nRecord;
      }
    }
  }
  return 1;
}

/*
** Inserts a record into a leaf that has room for it. Returns 0 if it has not.
**
** If the leaf was clean and has no free blocks, and the gap between the cell pointers and the cells suffices, SQLite puts the
** cell to the end of the gap and leaves the others where they are: then nothing has changed but the header with the
** pointers, and the cell.
*/
static int icsqlInsert(MemPage *pPage, int iCell, const void *pRecord, int nRecord, IcsqlChange *pChange, int *pRc){
  u8 aCell[ICSQL_CELL_BYTES];
  u8 *aData = pPage->aData;
  int hdr = pPage->hdrOffset;
  int nCell = pPage->nCell;
  int nTop, nFragment, nGapEnd, nNewTop, bSimple;
  int sz = 0;
  BtreePayload x;
  if( nRecord>pPage->maxLocal || nRecord+8>ICSQL_CELL_BYTES ) return 0;
  if( pPage->nFree<0 && btreeComputeFreeSpace(pPage)!=SQLITE_OK ) return 0;
  if( nRecord+8>pPage->nFree ) return 0;
  bSimple = hdr==0 && (pPage->pDbPage->flags & PGHDR_DIRTY)==0 && get2byte(&aData[1])==0;
  nTop = get2byteNotZero(&aData[hdr+5]);
  nFragment = aData[hdr+7];
  memset(&x, 0, sizeof(x));
  x.pKey = pRecord;
  x.nKey = nRecord;
  *pRc = fillInCell(pPage, aCell, &x, &sz);
  if( *pRc==SQLITE_OK ) *pRc = insertCellFast(pPage, iCell, aCell, sz);
  nNewTop = get2byteNotZero(&aData[hdr+5]);
  nGapEnd = pPage->cellOffset + 2*(nCell+1);
  if( bSimple && *pRc==SQLITE_OK && nNewTop==nTop-sz && nGapEnd<=nNewTop && get2byte(&aData[1])==0
   && aData[7]==nFragment && pPage->nCell==nCell+1 && nTop<=(int)pPage->pBt->usableSize
  ){
    pChange->iPage = pPage->pgno;
    pChange->nRange = 2;
    pChange->aRange[0] = 0;
    pChange->aRange[1] = nGapEnd;
    pChange->aRange[2] = nNewTop;
    pChange->aRange[3] = nTop;
  }
  return 1;
}

/*
** Writes a record where only one page changes, without a cursor. Returns 0, with nothing changed, where more is needed, or where a
** cursor would have to be told.
*/
static int icsqlPutInPage(
  BtShared *pBt,
  Pgno iPage, int iCell, int iOrder,
  const void *pRecord, int nRecord,
  IcsqlChange *pChange,
  int *pRc
){
  MemPage *pPage;
  int bDone = 0;
  *pRc = SQLITE_OK;
  if( pBt->pCursor || getAndInitPage(pBt, iPage, &pPage, 0)!=SQLITE_OK ) return 0;
  if( pPage->intKey==0 && pPage->nOverflow==0 && iCell<pPage->nCell ){
    if( iOrder==0 ){
      bDone = icsqlOverwrite(pPage, iCell, pRecord, nRecord, pChange, pRc);
    }else if( pPage->leaf ){
      bDone = icsqlInsert(pPage, iCell+(iOrder<0), pRecord, nRecord, pChange, pRc);
    }
  }
  releasePage(pPage);
  return bDone;
}

/* Cells that a leaf has at least when icsqlAppend() leaves the room of one of them empty. */
#define ICSQL_APPEND_CELLS 16

/*
** Inserts a record behind the last of all, on which the cursor is, when its leaf is full: what balance_quick() does for tables with
** rowids. The leaf's last cell moves up to be the divider, so that its room stays empty, and the new one begins a leaf of its
** own. balance() would copy three leaves' cells each time, at 18,000 instructions. Returns 0, with nothing changed, where
** it is not that simple.
*/
static int icsqlAppend(BtCursor *pCur, const void *pRecord, int nRecord, int *pRc){
  u8 aCell[ICSQL_CELL_BYTES];
  u8 aDivider[ICSQL_CELL_BYTES+4];
  BtShared *pBt = pCur->pBt;
  MemPage *pPage = pCur->pPage;
  MemPage *pParent, *pNew = 0;
  BtreePayload x;
  Pgno iNew = 0;
  int iLast, szLast, szCell = 0, rc;
  u8 *pLast;
  if( pCur->iPage<1 || !pPage->leaf || (pCur->curFlags & BTCF_Multiple) || pCur->ix!=pPage->nCell-1
   || pPage->nCell<ICSQL_APPEND_CELLS
   || nRecord>pPage->maxLocal || nRecord+8>ICSQL_CELL_BYTES || pPage->hdrOffset!=0 || pPage->nOverflow
   || !cursorOnLastPage(pCur) || ISAUTOVACUUM(pBt)
  ){
    return 0;
  }
  pParent = pCur->apPage[pCur->iPage-1];
  if( pPage->nFree<0 && btreeComputeFreeSpace(pPage) ) return 0;
  if( pParent->nFree<0 && btreeComputeFreeSpace(pParent) ) return 0;
  iLast = pPage->nCell - 1;
  pLast = findCell(pPage, iLast);
  szLast = pPage->xCellSize(pPage, pLast);
  if( szLast>ICSQL_CELL_BYTES || pLast+szLast>pPage->aDataEnd ) return 0;
  rc = allocateBtreePage(pBt, &pNew, &iNew, 0, 0);
  if( rc==SQLITE_OK ) rc = sqlite3PagerWrite(pPage->pDbPage);
  if( rc==SQLITE_OK ) rc = sqlite3PagerWrite(pParent->pDbPage);
  if( rc==SQLITE_OK ){
    zeroPage(pNew, PTF_ZERODATA|PTF_LEAF);
    memset(&x, 0, sizeof(x));
    x.pKey = pRecord;
    x.nKey = nRecord;
    rc = fillInCell(pNew, aCell, &x, &szCell);
  }
  if( rc==SQLITE_OK ) rc = insertCellFast(pNew, 0, aCell, szCell);
  if( rc==SQLITE_OK ){
    memset(aDivider, 0, 12);
    put4byte(aDivider, pPage->pgno);
    memcpy(&aDivider[4], pLast, szLast);
    dropCell(pPage, iLast, szLast, &rc);
  }
  if( rc==SQLITE_OK ){
    /* A cell of less than four bytes takes four in a leaf. */
    rc = insertCell(pParent, pParent->nCell, aDivider, pParent->xCellSize(pParent, aDivider), 0, pPage->pgno);
  }
  if( rc==SQLITE_OK ) put4byte(&pParent->aData[pParent->hdrOffset+8], iNew);
  releasePage(pNew);
  if( rc==SQLITE_OK && pParent->nOverflow ){
    releasePage(pPage);
    pCur->iPage--;
    pCur->pPage = pParent;
    rc = balance(pCur);
    pCur->pPage->nOverflow = 0;
  }
  pCur->eState = CURSOR_INVALID;
  *pRc = rc;
  return 1;
}

/*
** Writes a record in place of the one with its key, if there is one. aPath[] and iOrder say where the engine's walk has found the
** key (0) or a neighbour in a leaf that comes before it (below 0) or after it, and iPage is the page where that path ends; with
** nPath==0 SQLite looks.
*/
int icsql_keyed_put(
  sqlite3 *db,
  unsigned int iRoot,
  const unsigned short *aPath, int nPath, unsigned int iPage, int iOrder,
  const char *zKey, int nKey,
  const void *pRecord, int nRecord,
  IcsqlChange *pChange
){
  IcsqlCursor c;
  int rc;
  pChange->iPage = 0;
  if( nPath>0
   && icsqlPutInPage(db->aDb[0].pBt->pBt, iPage, aPath[nPath-1], iOrder, pRecord, nRecord, pChange, &rc)
  ){
    return icsqlExit(db, rc);
  }
  rc = icsqlCursorOpen(db, &c, iRoot, 1);
  if( rc!=SQLITE_OK ) return icsqlExit(db, rc);
  if( nPath>0 ){
    rc = icsqlFollow(&c, aPath, nPath);
  }else{
    rc = icsqlSeek(&c, zKey, nKey, &iOrder);
  }
  if( rc==SQLITE_OK && (iOrder>=0 || nPath==0 || !icsqlAppend(&c.cur, pRecord, nRecord, &rc)) ){
    BtreePayload x;
    memset(&x, 0, sizeof(x));
    x.pKey = pRecord;
    x.nKey = nRecord;
    /* With the flag it does not look for the key again. */
    rc = sqlite3BtreeInsert(&c.cur, &x, iOrder==0 ? BTREE_SAVEPOSITION : 0, iOrder);
  }
  sqlite3BtreeCloseCursor(&c.cur);
  return icsqlExit(db, rc);
}

/* Removes the record of a key; see icsql_keyed_put(). *pbRemoved: whether there was one. */
int icsql_keyed_remove(
  sqlite3 *db,
  unsigned int iRoot,
  const unsigned short *aPath, int nPath,
  const char *zKey, int nKey,
  int *pbRemoved
){
  IcsqlCursor c;
  int res = 0;
  int rc = icsqlCursorOpen(db, &c, iRoot, 1);
  *pbRemoved = 0;
  if( rc!=SQLITE_OK ) return icsqlExit(db, rc);
  if( nPath>0 ){
    rc = icsqlFollow(&c, aPath, nPath);
  }else{
    rc = icsqlSeek(&c, zKey, nKey, &res);
  }
  if( rc==SQLITE_OK && res==0 ){
    rc = sqlite3BtreeDelete(&c.cur, 0);
    *pbRemoved = rc==SQLITE_OK;
  }
  sqlite3BtreeCloseCursor(&c.cur);
  return icsqlExit(db, rc);
}

/*
** The first phase of a commit that writes a single page and keeps no journal: what sqlite3PagerCommitPhaseOne() comes to, without its
** sorting of pages and its steps for other cases. Returns 0 where it is another case.
*/
static int icsqlCommitOnePage(Pager *pPager, int *pRc){
  PgHdr *p = pPager->pPCache->pDirty;
  if( p==0 || p->pDirtyNext || (p->flags & PGHDR_NEED_SYNC) || pPager->eState!=PAGER_WRITER_CACHEMOD
   || pPager->journalMode!=PAGER_JOURNALMODE_OFF || !pPager->noSync || !pPager->changeCountDone
   || pPager->dbSize!=pPager->dbFileSize || pPager->pBackup || pPager->tempFile || p->pgno==1
  ){
    return 0;
  }
  p->pDirty = 0;
  pPager->eState = PAGER_WRITER_DBMOD;
  *pRc = pager_write_pagelist(pPager, p);
  if( *pRc==SQLITE_OK ){
    sqlite3PcacheCleanAll(pPager->pPCache);
    pPager->eState = PAGER_WRITER_FINISHED;
  }
  return 1;
}

/*
** Commits what icsql_keyed_begin() began outside of BEGIN: what the virtual machine does for a statement of its own. The
** virtual tables have no part in it, and one file needs no super-journal.
*/
int icsql_keyed_commit(sqlite3 *db){
  Btree *p = db->aDb[0].pBt;
  Pager *pPager = icsqlPager(db);
  int rc = sqlite3PagerExclusiveLock(pPager);
  if( rc==SQLITE_OK && db->xCommitCallback && db->xCommitCallback(db->pCommitArg) ) rc = SQLITE_CONSTRAINT_COMMITHOOK;
  if( rc==SQLITE_OK && !icsqlCommitOnePage(pPager, &rc) ) rc = sqlite3BtreeCommitPhaseOne(p, 0);
  if( rc==SQLITE_OK ) rc = sqlite3BtreeCommitPhaseTwo(p, 0);
  return icsqlExit(db, rc);
}
